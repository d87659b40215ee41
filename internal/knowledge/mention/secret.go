package mention

import (
	"path"
	"slices"
	"strings"
)

// Names of files, and of folders above them, that hold credentials by convention.
var (
	secretFolders = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store", ".config/gh", ".config/gcloud", ".config/git"}
	secretFiles   = []string{
		".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg",
		".vault-token", ".s3cfg", ".boto", ".rclone.conf", ".bash_history", ".zsh_history", ".psql_history", "kubeconfig", "keys.json",
		"credentials", "credentials.json", "secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml", "service-account.json",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "master.key", "terraform.tfstate",
	}
	secretEnds = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfvars", ".gpg", ".age"}
	backupEnds = []string{"~", ".bak", ".old", ".orig", ".save"}
	sampleEnds = []string{".example", ".sample", ".template", ".dist", ".defaults"}
)

// IsSecret reports whether a file, or all that is in a folder, may hold credentials, by
// its path alone.
func IsSecret(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, `\`, "/"))
	base := path.Base(name)
	for _, folder := range secretFolders {
		if strings.Contains("/"+name+"/", "/"+folder+"/") {
			return true
		}
	}
	for _, end := range backupEnds { // a copy of a key is one
		base = strings.TrimSuffix(base, end)
	}
	if base == ".env" || base == ".envrc" || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env") {
		return !slices.Contains(sampleEnds, path.Ext(base))
	}
	return slices.Contains(secretFiles, base) || slices.Contains(secretEnds, path.Ext(base))
}

package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// ProtectNames returns what belongs to nobody's build and is run, or believed,
// by programs outside: hooks and settings of git, editors and agents. Standing
// directly in a root, it is read-only, and cannot be made when it is missing.
//
// Of a repository, only what names programs is protected, so that commits work.
func ProtectNames() []string {
	return []string{
		".git/hooks", ".git/config", ".vscode", ".idea", ".husky", ".devcontainer",
		".claude", ".dure", ".agents", ".mcp.json", ".cargo",
	}
}

// PresentNames returns files that name programs for shells, git, package managers
// and build tools. Standing directly in a root, they are read-only. They are not
// held where they are missing: a build that could make one can as well change
// what it runs anyway.
func PresentNames() []string {
	return []string{
		".git/config.worktree", ".gitconfig", ".gitmodules", ".config/git", ".claude.json", ".devcontainer.json", ".envrc", ".mvn", ".yarn/plugins", ".yarn/releases",
		".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".config/fish", ".ripgreprc",
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs",
		"bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc", ".pre-commit-config.yaml",
		"lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
		"gradle/wrapper/gradle-wrapper.properties", "pyrightconfig.json",
	}
}

// sweptNames are files of a repository that git would follow and that cannot be
// held by something that git stumbles over. What a command makes of them is
// removed when it ends.
var sweptNames = []string{".git/commondir"}

// bareName is what turns a folder into a repository of its own. In one that lies in
// a repository already, git would not know which HEAD it is asked about: there it is
// not held, but removed when the command ends.
const bareName = "HEAD"

// hiddenNames are below the home folder.
var hiddenNames = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".kube",
	".docker", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".pgpass", ".my.cnf", ".vault-token",
	".terraform.d/credentials.tfrc.json", ".terraformrc", ".password-store", ".local/share/keyrings", ".config/op",
	".config/rclone", ".config/doctl", ".config/heroku", ".fly", ".oci", ".pypirc", ".gem/credentials",
	".cargo/credentials", ".cargo/credentials.toml", ".m2/settings-security.xml", ".config/containers/auth.json",
	".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird", ".electrum",
	".bitcoin", ".ethereum", ".claude/.credentials.json", ".codex/auth.json", ".colima", ".lima", ".rd/docker.sock",
	".local/share/containers/podman", ".bash_history", ".zsh_history", ".local/share/fish/fish_history",
	".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history",
	".local/share/atuin", ".cache/git/credential", ".git-credential-cache", ".subversion/auth", ".s3cfg", ".boto",
	".config/github-copilot", ".gemini/oauth_creds.json", ".config/configstore", ".config/netlify", ".local/share/com.vercel.cli",
	".config/stripe", ".config/.wrangler", ".cloudflared", ".config/hcloud", ".pulumi/credentials.json", ".sentryclirc",
	".databrickscfg", ".snowsql", ".config/sops", ".config/age", ".local/share/mkcert", ".composer/auth.json",
	".config/composer/auth.json", ".config/1Password", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/filezilla", ".putty",
	".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".config/Signal", ".config/Slack", ".config/discord",
	".local/share/TelegramDesktop", "snap/firefox", "snap/chromium", ".var/app", ".orbstack/run",
	"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Messages", "Library/Mail",
	"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Application Support/1Password",
}

// hiddenPaths are sockets that lead out, and secrets of the system. What is below
// /run is gone anyway where there are namespaces.
var hiddenPaths = []string{
	"/var/run/docker.sock", "/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/dbus", "/run/user",
	"/tmp/.X11-unix", "/tmp/.ICE-unix", "/mnt/wslg", "/run/WSL", "/etc/shadow", "/etc/gshadow", "/etc/sudoers.d",
	"/run/secrets", "/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/krb5.keytab",
	"/var/snap/lxd", "/var/lib/lxd", "/var/lib/incus", "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/docker", "/var/lib/containerd", "/root/.ssh",
}

// socketVariables name sockets of agents and desktops.
var socketVariables = []string{"SSH_AUTH_SOCK", "GPG_AGENT_INFO", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XAUTHORITY", "KUBECONFIG", "NETRC"}

// Hidden returns the credentials and the sockets of agents that a user of this
// home folder and environment has: what a [Confinement] should hide at least.
// Some of it may not exist. Files that a build needs, such as .npmrc, stay
// readable.
func Hidden(home string, env []string) []string {
	var all []string
	if home != "" {
		for _, name := range hiddenNames {
			all = append(all, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	all = append(all, hiddenPaths...)
	runtime := ""
	values := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	if runtime = values["XDG_RUNTIME_DIR"]; filepath.IsAbs(runtime) && filepath.Clean(runtime) != "/" {
		all = append(all, runtime)
	}
	for _, name := range socketVariables {
		value := values[name]
		if _, path, ok := strings.Cut(value, "unix:"); ok {
			value = strings.TrimPrefix(strings.TrimPrefix(path, "path="), "//")
		}
		value, _, _ = strings.Cut(value, ",")
		for _, path := range filepath.SplitList(value) {
			if name == "WAYLAND_DISPLAY" && !filepath.IsAbs(path) {
				path = filepath.Join(runtime, path)
			}
			if filepath.IsAbs(path) && filepath.Clean(path) != "/" {
				all = append(all, filepath.Clean(path))
			}
		}
	}
	return all
}

// opens reports whether the grant to write at a path opens what is protected at
// another: the thing itself, what lies in it, and in the folder of a repository,
// which is protected as a whole wherever that is decided. To write a folder does
// not mean to write everything that is protected in it.
func opens(grant, protected string) bool {
	under := func(path, folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	}
	inGit := slices.ContainsFunc(strings.Split(filepath.ToSlash(grant), "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
	return under(grant, protected) || inGit && under(protected, grant)
}

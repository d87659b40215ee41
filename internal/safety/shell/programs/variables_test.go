package programs

import "testing"

func TestSteers(t *testing.T) {
	for _, tt := range []struct {
		name string
		by   Setter // who is kept from it
	}{
		{"PATH", Line | Hook | Folder},
		{"path", Hook | Folder},
		{"LD_PRELOAD", Line | Hook | Folder},
		{"LD_", Line | Hook | Folder},
		{"LD", Folder},
		{"GIT_PAGER", Line | Hook | Folder},
		{"PAGER", Line | Hook | Folder},
		{"MANPAGER", Folder},
		{"SYSTEMD_PAGER", Line | Folder},
		{"CDPATH", Hook | Folder},
		{"Claude_Code", Hook | Folder},
		{"npm_config_registry", Line | Hook | Folder},
		{"NPM_CONFIG_REGISTRY", Hook | Folder},
		{"https_proxy", Line | Folder},
		{"NO_PROXY", Line | Folder},
		{"_PROXY", Line | Folder},
		{"PROXY", 0},
		{"PYTHONPATH", Line | Hook | Folder},
		{"PYTHONUNBUFFERED", Line},
		{"AWS_PROFILE", Folder},
		{"TMPDIR", Folder},
		{"", 0},
		{"FOO", 0},
		{"MYPATH", 0},
	} {
		for by, who := range map[Setter]string{Line: "a command line", Hook: "a hook", Folder: "a repository"} {
			if got, want := Steers(tt.name, by), tt.by&by != 0; got != want {
				t.Errorf("%q set by %s: %v, want %v", tt.name, who, got, want)
			}
		}
	}
}

// A hook is the user's; a repository is anybody's.
func TestRepositoriesMaySetNoMoreThanHooks(t *testing.T) {
	for _, s := range steering {
		if s.by&Hook != 0 && s.by&Folder == 0 {
			t.Errorf("only hooks are kept from %v", s.names)
		}
	}
}

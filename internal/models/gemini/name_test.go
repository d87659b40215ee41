package gemini

import "testing"

func TestNamesStayInThePath(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-4-neon": "gemini-4-neon", "tunedModels/a.b-1": "tunedModels/a.b-1", "../../x?key=1#y": "_/_/x_key_1_y", "모델": "__",
	} {
		if got := inPath(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

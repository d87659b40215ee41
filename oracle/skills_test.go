package oracle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/internal/extend/skills"
)

// TestSkillsRef compares with skills-ref, a checker of the open standard, which of more
// than 200 skills are as that wants them. SKILLS_REF names the folder that npm has
// installed it to.
func TestSkillsRef(t *testing.T) {
	at := os.Getenv("SKILLS_REF")
	if at == "" {
		if slices.Contains(strings.Split(os.Getenv("DURE_REQUIRE"), ","), "skills-ref") {
			t.Fatal("SKILLS_REF does not say where skills-ref is")
		}
		t.Skip("SKILLS_REF does not say where skills-ref is")
	}
	dir := t.TempDir()
	var all []string
	add := func(folder, text string) {
		path := filepath.Join(dir, fmt.Sprint(len(all)), folder)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, skills.File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	fields := []string{
		"", "license: MIT\n", "license: 4\n", "allowed-tools: Read Grep\n", "allowed-tools: [Read]\n", "metadata:\n  a: b\n", "metadata: x\n", "compatibility: x\n",
		"compatibility: 4\n", "compatibility: " + strings.Repeat("c", 500) + "\n", "compatibility: " + strings.Repeat("c", 501) + "\n", "model: opus\n",
		"allowed_tools: Read\n", "argument-hint: x\n", "license: [x\n", "license: a: b\n", "license: !own x\n", "name: twice\n",
	}
	descriptions := []string{"description: x\n", "", "description: ''\n", "description: " + strings.Repeat("d", 1025) + "\n", "description: " + strings.Repeat("😀", 512) + "\n"}
	names := []string{"good", "a-1", "Big", "-a", "a-", "a--b", "a_b", "a b", "é", "한글", "中文", "д", "ß", strings.Repeat("x", 64), strings.Repeat("x", 65), "123", "true"}
	for _, n := range names {
		for _, f := range fields[:11] {
			add(n, "---\nname: "+n+"\ndescription: x\n"+f+"---\nText.\n")
		}
	}
	for _, d := range descriptions {
		for _, f := range fields {
			add("good", "---\nname: good\n"+d+f+"---\nText.\n")
		}
	}
	add("good", "Text.")
	add("good", "\ufeff---\nname: good\ndescription: x\n---\n")
	add("good", "---\nname: good\ndescription: x\n")
	add("good", "---\nname: other\ndescription: x\n---\n")
	add("good", "---\r\nname: good\r\ndescription: x\r\n---\r\n")
	script := `import { validate } from "skills-ref"; import fs from "node:fs";
const out = []; for (const d of JSON.parse(fs.readFileSync(0, "utf8"))) out.push((await validate(d)).length === 0); console.log(JSON.stringify(out));`
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--input-type=module", "-e", script)
	cmd.Dir, cmd.Stdin = at, strings.NewReader(string(input))
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs []bool
	if err := json.Unmarshal(data, &theirs); err != nil || len(theirs) != len(all) || len(all) < 200 {
		t.Fatalf("%d of %d, %v", len(theirs), len(all), err)
	}
	for i, path := range all {
		s, err := skills.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Valid != theirs[i] {
			text, _ := os.ReadFile(s.File)
			t.Errorf("%v here, %v there: %.200q\n%s", s.Valid, theirs[i], text, strings.Join(s.Warnings(), "\n"))
		}
	}
	t.Logf("%d skills, %d of them as the standard wants them", len(all), strings.Count(fmt.Sprint(theirs), "true"))
}

package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every key has a place in the page about settings: itself, or the object that it
// stands in with its last part. Its row says who may set it.
func TestKeysAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(data), -1)
	rows = slices.DeleteFunc(rows, func(row string) bool { return strings.Count(row, " | ") != 2 }) // key, meaning, who
	for _, k := range Keys() {
		path := strings.ReplaceAll(k.Path, "*", "NAME")
		at := strings.LastIndexByte(path, '.')
		i := slices.IndexFunc(rows, func(row string) bool {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			return strings.Contains(first, "`"+path+"`") ||
				at > 0 && strings.Contains(first, "`"+path[:at]+"`") && strings.Contains(row, "`"+path[at+1:]+"`")
		})
		if i < 0 {
			t.Errorf("docs/settings.md does not say what %s is", path)
			continue
		}
		cells := strings.Split(strings.Trim(rows[i], "| "), " | ")
		if who := cells[len(cells)-1]; !strings.Contains(who, string(k.Who)) {
			t.Errorf("docs/settings.md: %s may be set by %s, and not by %s", path, k.Who, who)
		}
	}
}

// The table and what is read are the same: no key without a field, and no field
// without a key.
func TestTableIsWhatIsRead(t *testing.T) {
	var fields []string
	var walk func(prefix string, s reflect.Type)
	walk = func(prefix string, s reflect.Type) {
		for f := range s.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := f.Type
			for at.Kind() == reflect.Pointer {
				at = at.Elem()
			}
			path := prefix + name
			if at.Kind() == reflect.Map && at.Elem().Kind() == reflect.Struct {
				path, at = path+".*", at.Elem()
			}
			switch {
			case f.Anonymous:
				walk(prefix, at)
			case name == "-":
			case at.Kind() == reflect.Struct:
				walk(path+".", at)
			default:
				fields = append(fields, path)
			}
		}
	}
	walk("", reflect.TypeFor[Settings]())
	slices.Sort(fields)
	var keys []string
	for _, k := range Keys() {
		if k.Means[0] == "" || k.Means[1] == "" {
			t.Errorf("%s means nothing", k.Path)
		}
		if k.Path != "$schema" {
			keys = append(keys, k.Path)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return slices.Contains(keys, f) }); len(missing) > 0 {
		t.Errorf("not in the table: %s", missing)
	}
	if more := slices.DeleteFunc(keys, func(k string) bool { return slices.Contains(fields, k) }); len(more) > 0 {
		t.Errorf("in the table alone: %s", more)
	}
}

package inner

import (
	"encoding/binary"
	"reflect"
	"testing"
)

var sample = Spec{
	Path: "/bin/sh", Argv: []string{"sh", "-c", "a\x00b\n"}, Env: []string{}, Dir: "/",
	Namespaces: true, Mounts: []Mount{{Kind: Bind, Path: "/a", Source: "/b", Make: true}, {Kind: Proc, Path: "/proc"}},
	Loopback: true, Listen: 3128, Terminal: true, Landlock: 7, Write: []string{"/a"},
	NoInet: true, Tasks: 1 << 40, Processes: 3, FileSize: 4, OpenFiles: 5, Memory: 6,
}

func TestSpec(t *testing.T) {
	for _, want := range []Spec{{}, sample} {
		text := want.Encode()
		if n := binary.LittleEndian.Uint32(text); int(n) != len(text)-4 {
			t.Errorf("its length is given as %d, and is %d", n, len(text)-4)
		}
		got, err := Decode(text[4:])
		if err != nil || len(want.Mounts) == 0 && len(got.Mounts) != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		if len(want.Mounts) == 0 {
			got.Mounts = nil
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("read %+v\nwant %+v", *got, want)
		}
		for cut := range text[4:] {
			if _, err := Decode(text[4 : 4+cut]); err == nil {
				t.Errorf("what was cut at %d was read", cut)
			}
		}
	}
}

// Whatever is read is small, and reads the same when it is written again.
func FuzzSpec(f *testing.F) {
	f.Add(sample.Encode()[4:])
	f.Add((&Spec{}).Encode()[4:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Decode(s.Encode()[4:])
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

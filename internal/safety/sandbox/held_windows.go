package sandbox

import "os"

// held returns nothing: pipes have no deadlines here.
func held(*os.File) (data []byte, open bool) { return nil, true }

package control_test

import (
	"context"
	"fmt"
	"os"

	client "dure/client/control"
	"dure/client/protocol"
	"dure/internal/models/script"
)

// A program asks for something, and decides itself what may be done for it.
func Example() {
	// The model of this example is a script, and dure is this program itself. Elsewhere,
	// an empty Command starts the dure that is installed, with the settings of its user.
	s, done, err := newScene(script.Reply{Calls: write("note.txt")}, script.Reply{Text: "I was not allowed to."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	exe, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	h, err := client.Start(ctx, client.Command{Path: exe, Env: s.env()}, client.Config{
		Initialize: protocol.InitializePayload{Client: protocol.Client{Name: "example"}},
		CanUseTool: func(_ context.Context, _ string, q protocol.CanUseToolData) protocol.CanUseToolResponsePayload {
			fmt.Println("asked:", q.Tool)
			return protocol.CanUseToolResponsePayload{Behavior: "deny", Reason: "look, and touch nothing"}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _, err := h.Say(ctx, "", protocol.UserMessagePayload{Text: "Write a note"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(result.Status+":", result.Text)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// asked: file-system__write
	// done: I was not allowed to.
}

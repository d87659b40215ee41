package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dure/agent"
)

// ErrUntrusted is a plugin of a project that nobody trusts.
var ErrUntrusted = errors.New("the folder is not trusted")

// Problem is what is wrong with a plugin or a marketplace, and what to do about it; nil = nothing.
func Problem(name string, err error) error {
	if err == nil {
		return nil
	}
	if p := agent.ProblemOf(err); p != nil {
		return p
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	fix := "look at what is there with dure plugin list, and at a folder with dure plugin validate"
	switch {
	case errors.Is(err, ErrChanged):
		fix = "if you trust what it is now, install it again; else remove it"
	case errors.Is(err, ErrUntrusted):
		fix = "look at it with dure trust show, then trust it with dure trust"
	case errors.Is(err, ErrForbidden):
		fix = "ask your administrator"
	case errors.Is(err, ErrMarket):
		fix = "add it with dure plugin marketplace add SOURCE, then install NAME@MARKETPLACE"
	case errors.Is(err, ErrNoMarket):
		fix = "add it with dure plugin marketplace add SOURCE"
	case errors.Is(err, ErrOption):
		fix = "see what can be set with dure plugin set " + name
	case errors.Is(err, ErrReach):
		fix = "check the address and the network, and run it again"
	case errors.Is(err, ErrSource), errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(err.Error(), "fetching "):
		fix = "name a folder, an archive, OWNER/REPOSITORY, an address that begins with https://, npm:PACKAGE or NAME@MARKETPLACE"
	}
	return &agent.Problem{
		Code: agent.ProblemPlugin, Message: fmt.Sprintf("plugin %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}

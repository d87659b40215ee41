package oauth

import (
	"context"

	"dure/agent/query"
)

// SignIn opens a sign-in, tells show about it, and waits until it is over. With a token that is
// good already it does neither.
func (d *Desk) SignIn(ctx context.Context, q Request, show func(query.SignInState) error) error {
	r := d.Token(ctx, q)
	switch {
	case r.Error != nil:
		return r.Error
	case r.Ready != nil:
		return nil
	}
	if err := show(query.SignInState{Status: "authorization_required", SignInRequired: r.Required}); err != nil {
		return err
	}
	_, err := d.Await(ctx, r.Required.AuthSession)
	return err
}

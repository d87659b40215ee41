package oauth

import "context"

// Needed is what a person has to do to sign in.
type Needed struct {
	Status string `json:"status"` // authorization_required
	Required
}

// SignIn opens a sign-in, tells show about it, and waits until it is over. With a token that is
// good already it does neither.
func (d *Desk) SignIn(ctx context.Context, q Request, show func(Needed) error) error {
	r := d.Token(ctx, q)
	switch {
	case r.Error != nil:
		return r.Error
	case r.Ready != nil:
		return nil
	}
	if err := show(Needed{"authorization_required", *r.Required}); err != nil {
		return err
	}
	_, err := d.Await(ctx, r.Required.AuthSession)
	return err
}

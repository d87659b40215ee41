package hosts

import (
	"errors"
	"net/url"
)

// Shown returns a URL without what may be a secret in it.
func Shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// Cause returns an error without the URL that it names, which may hold a password.
func Cause(err error) string {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err.Error()
	}
	return "it is no address"
}

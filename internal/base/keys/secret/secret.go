// Package secret hides texts that nobody is to read, such as keys in settings: whoever needs one
// converts it to a string. It starts no goroutines.
package secret

import "log/slog"

// Text is a text that no formatting, logging or encoding shows.
type Text string

// Hidden is shown in the place of a secret.
const Hidden = "(hidden)"

func (s Text) String() string { return Hidden }

// GoString hides the secret from %#v.
func (s Text) GoString() string { return Hidden }

// MarshalText hides the secret from encodings.
func (s Text) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// LogValue hides the secret from logs.
func (s Text) LogValue() slog.Value { return slog.StringValue(Hidden) }

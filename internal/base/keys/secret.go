package keys

import "log/slog"

// Secret is a text that no formatting, logging or encoding shows.
type Secret string

// Hidden is shown in the place of a secret.
const Hidden = "(hidden)"

func (s Secret) String() string { return Hidden }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return Hidden }

// MarshalText hides the secret from encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Hidden) }

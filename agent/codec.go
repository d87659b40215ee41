package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Version is the version of the event format. Readers refuse lines of a later
// version, and never half-read them.
const Version = 1

// decoders is the one table that ties a kind to a Go type.
var decoders = map[string]func([]byte) (Body, error){
	"session.opened":       decode[SessionOpened],
	"settings.changed":     decode[SettingsChanged],
	"log.repaired":         decode[LogRepaired],
	"log.sealed":           decode[LogSealed],
	"note":                 decode[Note],
	"answer.rated":         decode[Rated],
	"input.queued":         decode[InputQueued],
	"input.added":          decode[InputAdded],
	"turn.started":         decode[TurnStarted],
	"turn.ended":           decode[TurnEnded],
	"model.requested":      decode[ModelRequested],
	"tools.changed":        decode[ToolsChanged],
	"tools.selected":       decode[ToolsSelected],
	"tools.switched":       decode[ToolsSwitched],
	"model.answered":       decode[ModelAnswered],
	"model.failed":         decode[ModelFailed],
	"context.threshold":    decode[ContextThreshold],
	"context.added":        decode[ContextAdded],
	"extension.kept":       decode[ExtensionKept],
	"hook.started":         decode[HookStarted],
	"hook.ran":             decode[HookRan],
	"rules.granted":        decode[RulesGranted],
	"rules.revoked":        decode[RulesRevoked],
	"call.deferred":        decode[CallDeferred],
	"input.dropped":        decode[InputDropped],
	"skill.activated":      decode[SkillActivated],
	"skill.completed":      decode[SkillCompleted],
	"context.compacted":    decode[ContextCompacted],
	"context.restored":     decode[ContextRestored],
	"conversation.rewound": decode[ConversationRewound],
	"checkpoint.taken":     decode[CheckpointTaken],
	"files.rewound":        decode[FilesRewound],
	"changes.accepted":     decode[ChangesAccepted],
	"plan.proposed":        decode[PlanProposed],
	"plan.changed":         decode[PlanChanged],
	"plan.decided":         decode[PlanDecided],
	"call.decided":         decode[CallDecided],
	"approval.asked":       decode[ApprovalAsked],
	"approval.resolved":    decode[ApprovalResolved],
	"call.started":         decode[CallStarted],
	"call.spawned":         decode[CallSpawned],
	"call.finished":        decode[CallFinished],
	"call.settled":         decode[CallSettled],
	"auth.granted":         decode[AuthGranted],
	"child.opened":         decode[ChildOpened],
	"child.ended":          decode[ChildEnded],
	"crew.progressed":      decode[CrewProgressed],
	"model.fragment":       decode[Fragment],
	"call.output":          decode[CallOutput],
	"state.changed":        decode[StateChanged],
}

func decode[T Body](data []byte) (Body, error) {
	var b T
	err := json.Unmarshal(data, &b)
	return b, err
}

// Kinds returns the names of all kinds, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(decoders)) }

// DecodeBody reads the body of an event of the given format version. A kind
// that is not known becomes [Unknown] and is written back unchanged.
func DecodeBody(version int, kind string, data []byte) (Body, error) {
	if version > Version {
		return nil, fmt.Errorf("event format version %d is newer than this program knows (%d): use a newer dure", version, Version)
	}
	dec, ok := decoders[kind]
	if !ok {
		return Unknown{kind, slices.Clone(data)}, nil
	}
	b, err := dec(data)
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", kind, err)
	}
	return b, nil
}

// EncodeBody writes the body of an event.
func EncodeBody(b Body) (json.RawMessage, error) {
	if u, ok := b.(Unknown); ok {
		return u.Raw, nil
	}
	return json.Marshal(b)
}

// frame is an event as JSON. The order of the fields is part of the format.
type frame struct {
	V     int             `json:"v"`
	Seq   int64           `json:"seq"`
	Epoch int64           `json:"ep"`
	Time  time.Time       `json:"ts"`
	Kind  string          `json:"k"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"d"`
}

// AppendFrame appends the JSON of an event whose body has been encoded to data.
// It is what [Event.MarshalJSON] writes, without the cost of reflection.
func AppendFrame(dst []byte, e Event, data []byte) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, Version, 10)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"ep":`...)
	dst = strconv.AppendInt(dst, e.Epoch, 10)
	dst = append(dst, `,"ts":"`...)
	dst = e.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","k":`...)
	dst = appendString(dst, e.Kind())
	dst = append(dst, `,"id":`...)
	dst = appendString(dst, e.ID)
	dst = append(dst, `,"d":`...)
	dst = append(dst, data...)
	return append(dst, '}')
}

// appendString appends s as JSON. Kinds and IDs are plain ASCII nearly always.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			q, _ := json.Marshal(s) // a string always encodes
			return append(dst, q...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// MarshalJSON writes the event with its kind beside its body.
func (e Event) MarshalJSON() ([]byte, error) {
	data, err := EncodeBody(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", e.Kind(), err)
	}
	return AppendFrame(make([]byte, 0, 128+len(data)), e, data), nil
}

// UnmarshalJSON reads an event.
func (e *Event) UnmarshalJSON(data []byte) error {
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	body, err := DecodeBody(f.V, f.Kind, f.Data)
	if err != nil {
		return fmt.Errorf("event %d: %w", f.Seq, err)
	}
	*e = Event{Seq: f.Seq, Epoch: f.Epoch, Time: f.Time, ID: f.ID, Body: body}
	return nil
}

// commands ties the names of commands to their types.
var commands = map[string]func([]byte) (Command, error){
	"prompt":    decodeCommand[Prompt],
	"interrupt": decodeCommand[Interrupt],
	"resolve":   decodeCommand[Resolve],
	"change":    decodeCommand[Change],
	"compact":   decodeCommand[Compact],
	"restore":   decodeCommand[Restore],
	"rewind":    decodeCommand[Rewind],
	"rate":      decodeCommand[Rate],
	"accept":    decodeCommand[Accept],
	"reject":    decodeCommand[Reject],
	"continue":  decodeCommand[Continue],

	"rules.revoke": decodeCommand[Revoke],

	"plan.change": decodeCommand[ChangePlan],
	"plan.decide": decodeCommand[DecidePlan],
}

func decodeCommand[T Command](data []byte) (Command, error) {
	var c T
	err := json.Unmarshal(data, &c)
	return c, err
}

// Commands returns the names of all commands, sorted.
func Commands() []string { return slices.Sorted(maps.Keys(commands)) }

// DecodeCommand reads a command by its name on the wire.
func DecodeCommand(name string, data []byte) (Command, error) {
	dec, ok := commands[name]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", name)
	}
	c, err := dec(data)
	if err != nil {
		return nil, fmt.Errorf("decoding command %s: %w", name, err)
	}
	return c, nil
}

// EncodeCommand writes a command; its name travels beside it.
func EncodeCommand(c Command) (json.RawMessage, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding command %s: %w", c.Command(), err)
	}
	return data, nil
}

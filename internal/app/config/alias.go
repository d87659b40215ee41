package config

import (
	"encoding/json"
	"strings"
)

// An alias is another word for a key. It is weaker than the key itself in one file.
type alias struct {
	path string
	to   string
	make func(raw json.RawMessage) json.RawMessage // nil = the value is the same
}

// aliases are other words for keys, as files of other programs and older ones have them.
func aliases() []alias {
	return []alias{
		{"permissionMode", "permissions.defaultMode", nil},
		{"permissions.mode", "permissions.defaultMode", nil},
		{"enableReflexion", "reflexion.enabled", nil},
		{"reflexionMaxContextEntries", "reflexion.maxEntries", nil},
		{"reflexionEvaluateOnSuccess", "reflexion.evaluateOnSuccess", nil},
		{"planMode", "plan.mode", nil},
		{"maxPlanRegenerationRetries", "plan.retries", nil},
		{"enableTaskState", "taskState", nil},
		{"eventLogRetentionDays", "retention.days", nil},
		{"autoCompactEnabled", "compact.auto", nil},
		{"autoCompactThresholdPercent", "compact.threshold", percent},
		{"enableHierarchicalMemory", "memory.enabled", nil},
		{"userMemoryPath", "memory.user", nil},
		{"maxIncludeDepth", "memory.depth", nil},
		{"maxAgentIterations", "maxSteps", nil},
		{"maxRetryOnError", "limits.retries", nil},
		{"enablePostToolVerification", "verification.enabled", nil},
		{"enableCoworkVerification", "verification.cowork", nil},
		{"enableCodeVerification", "verification.code", nil},
		{"fileCheckpointingEnabled", "checkpoints", nil},
		{"cleanupPeriodDays", "retention.days", nil},
		{"effortLevel", "effort", nil},
	}
}

// percent makes a share of a number of hundredths.
func percent(raw json.RawMessage) json.RawMessage {
	var n float64
	if json.Unmarshal(raw, &n) != nil {
		return raw // its type is what is wrong with it
	}
	out, err := json.Marshal(n / 100)
	if err != nil {
		return raw
	}
	return out
}

// aliasOf returns the key that another word stands for.
func aliasOf(path string) (alias, bool) {
	for _, a := range aliases() {
		if strings.EqualFold(fold(a.path), fold(path)) {
			return a, true
		}
	}
	return alias{}, false
}

func unspelt(r rune) rune {
	if r == '_' || r == '-' {
		return -1
	}
	return r
}

package sandbox

import (
	"runtime"
	"strings"
)

// credentials are the variables by which this program and its like sign in to
// providers of models. Commands have no use for them. Credentials of other tools
// (cloud command lines, git hosts, package registries) reach commands, because
// ordinary work needs them, unless settings name them.
var credentials = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN",
	"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN",
	"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_GENAI_API_KEY",
	"AWS_BEARER_TOKEN_BEDROCK", "CEREBRAS_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY",
	"FIREWORKS_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY",
	"PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY",
}

// secretWords mark a variable of our own, DURE_..., as a credential.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD"}

// Scrub returns env without credentials: the known names of this file, every
// DURE_ variable whose name has KEY, TOKEN, SECRET or PASSWORD in it, and what
// extra names. An entry of extra is a name, or a prefix followed by "*". Names
// are compared without regard to case on Windows. Env is not changed.
func Scrub(env, extra []string) []string {
	fold := func(s string) string { return s }
	if runtime.GOOS == "windows" {
		fold = strings.ToUpper
	}
	drop := map[string]bool{}
	var prefixes []string
	for _, list := range [][]string{credentials, extra} {
		for _, name := range list {
			if p, ok := strings.CutSuffix(fold(name), "*"); ok {
				prefixes = append(prefixes, p)
				continue
			}
			drop[fold(name)] = true
		}
	}
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		name = fold(name)
		if !drop[name] && !ourSecret(name) && !hasAnyPrefix(name, prefixes) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func ourSecret(name string) bool {
	rest, ok := strings.CutPrefix(name, "DURE_")
	if !ok {
		return false
	}
	for _, w := range secretWords {
		if strings.Contains(rest, w) {
			return true
		}
	}
	return false
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

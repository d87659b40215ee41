package transcript

import (
	"slices"

	"dure/agent"
)

// SkillSource is the source of what skills add to the conversation; the key is their run.
const SkillSource = "skill"

// maxSkills bounds the skills that a state knows the texts of; of more, the oldest are
// forgotten.
const maxSkills = 50

// Apart is a skill that goes on in the background, in a session of its own.
type Apart struct {
	Run  string `json:"run"`
	Name string `json:"name"`
}

// skillActivated puts a skill in force: the model that it asks for answers for the rest
// of the turn.
func (s *State) skillActivated(b agent.SkillActivated) {
	if !s.Turn.Open {
		return
	}
	s.Turn.Skills = append(slices.Clip(s.Turn.Skills), agent.TurnSkill{SkillActivated: b})
	if b.Model != "" && !b.Fork {
		s.Turn.Instead = b.Model
	}
}

// Underway are the skills of the turn that is open.
func (s *State) Underway() []agent.TurnSkill {
	if !s.Turn.Open {
		return nil
	}
	return slices.Clone(s.Turn.Skills)
}

// Effort is the effort that the skills of the running turn ask for, the newest word first,
// or the one that was chosen for the session; "" = that of the settings.
func (s *State) Effort() string {
	if !s.Turn.Open {
		return s.Chosen
	}
	for _, k := range slices.Backward(s.Turn.Skills) {
		if k.Effort != "" && !k.Fork {
			return k.Effort
		}
	}
	return s.Chosen
}

func (s *State) skillCompleted(e agent.Event, b agent.SkillCompleted) {
	at := slices.IndexFunc(s.Turn.Skills, func(k agent.TurnSkill) bool { return k.Run == b.Run })
	over := slices.ContainsFunc(s.Apart, func(k Apart) bool { return k.Run == b.Run })
	s.Apart = slices.DeleteFunc(slices.Clone(s.Apart), func(k Apart) bool { return k.Run == b.Run })
	if b.Background {
		s.Apart = append(s.Apart, Apart{b.Run, b.Skill})
	}
	if at >= 0 && !over {
		s.Turn.Skills = slices.Clone(s.Turn.Skills)
		s.Turn.Skills[at].Done = true
		if model := s.Turn.Skills[at].Model; !b.OK { // nothing of it holds
			s.Turn.Skills = slices.Delete(s.Turn.Skills, at, at+1)
			if model != "" && s.Turn.Instead == model {
				s.Turn.Instead = ""
			}
		}
	}
	if b.Text == "" {
		return
	}
	s.Owed = append(slices.Clip(s.Owed), Owed{Seq: e.Seq, Run: b.Run, Hook: b.Skill, Text: b.Text, Source: SkillSource})
	if !b.OK || b.Background {
		return
	}
	s.Skills = append(slices.DeleteFunc(slices.Clone(s.Skills), func(k agent.SkillText) bool { return k.Name == b.Skill }), agent.SkillText{Seq: e.Seq, Run: b.Run, Name: b.Skill})
	s.Skills = s.Skills[max(0, len(s.Skills)-maxSkills):]
}

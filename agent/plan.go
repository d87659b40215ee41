package agent

// A Plan is what a model means to do, as a person decides about it: steps in their
// order, and what the model has written around them. [PlanProposed] says what the fields
// were made of.
type Plan struct {
	Intro string     `json:"intro,omitempty"` // in front of the first step
	Steps []PlanStep `json:"steps"`
	Outro string     `json:"outro,omitempty"` // behind the last one
}

// PlanStep is one step of a [Plan], in Markdown without its number.
type PlanStep struct {
	Above string `json:"above,omitempty"` // heading or remark in front of it
	Text  string `json:"text"`
}

// PlanMode says when a session plans before it does anything.
type PlanMode string

// The plan modes. They stand beside the permission modes: what they do is to turn
// [ModePlan] on.
const (
	PlanOff    PlanMode = "off"    // when it is told to
	PlanAlways PlanMode = "always" // for every request
	PlanAuto   PlanMode = "auto"   // for those that look like much work, and when the model wants to
)

// PlanModes are all of them, in the order in which a person goes through them.
func PlanModes() []PlanMode { return []PlanMode{PlanOff, PlanAlways, PlanAuto} }

// PlanVerdict is what becomes of a plan.
type PlanVerdict string

// The verdicts on a plan.
const (
	PlanApproved PlanVerdict = "approved"
	PlanRejected PlanVerdict = "rejected"
	PlanAnother  PlanVerdict = "regenerate" // the model is to make another one
)

// What [ChangePlan] does to a plan.
const (
	PlanEdit = "edit" // step N gets another text
	PlanAdd  = "add"  // a step is put at place N; 0 = behind the last
	PlanMove = "move" // step N goes to place To
	PlanDrop = "drop" // step N is taken out
	PlanText = "text" // all of it is written anew
)

type (
	// ChangePlan changes the plan that waits for a decision. Nothing else happens: the
	// plan waits on.
	ChangePlan struct {
		Plan string `json:"plan,omitempty"` // its ID; "" = the one that waits
		Do   string `json:"do"`             // edit, add, move, drop or text
		Step int    `json:"step,omitempty"` // from 1
		To   int    `json:"to,omitempty"`
		Text string `json:"text,omitempty"`
	}

	// DecidePlan decides about the plan that waits: approved, plan mode is over and the
	// model carries out what the plan says by now; rejected, the turn ends; with
	// regenerate, the model is to make another one, for the reason that is given. An
	// approved plan that is rejected later on is not carried along any more.
	DecidePlan struct {
		Plan    string      `json:"plan,omitempty"` // as in ChangePlan
		Verdict PlanVerdict `json:"verdict"`
		Reason  string      `json:"reason,omitempty"`
	}
)

// Command returns the name of the command on the wire.
func (ChangePlan) Command() string { return "plan.change" }
func (DecidePlan) Command() string { return "plan.decide" }

type (
	// PlanProposed records a plan before somebody is asked about it.
	PlanProposed struct {
		Plan string `json:"plan"`           // ID
		Call string `json:"call,omitempty"` // that puts it to the user
		Ask  string `json:"ask,omitempty"`  // ID of the question about the call
		Text string `json:"text"`           // as the model wrote it
		Body Plan   `json:"body"`           // what was read out of it
	}

	// PlanChanged records what a plan is from now on, and by what it became that.
	PlanChanged struct {
		Plan string `json:"plan"`
		Body Plan   `json:"body"`
		Do   string `json:"do"` // as in ChangePlan
		Step int    `json:"step,omitempty"`
		To   int    `json:"to,omitempty"`
		By   string `json:"by,omitempty"`
	}

	// PlanDecided records what became of a plan.
	PlanDecided struct {
		Plan    string      `json:"plan"`
		Verdict PlanVerdict `json:"verdict"`
		Reason  string      `json:"reason,omitempty"`
		By      string      `json:"by,omitempty"`
	}
)

// Kind returns the kind's name on disk and on the wire.
func (PlanProposed) Kind() string { return "plan.proposed" }
func (PlanChanged) Kind() string  { return "plan.changed" }
func (PlanDecided) Kind() string  { return "plan.decided" }

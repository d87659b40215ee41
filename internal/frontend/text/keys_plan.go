package text

import "dure/agent"

// The messages about plans.
const (
	ProblemNoPlan Key = iota + planKeys
	FixNoPlan
	ProblemPlan
	FixPlan
	ProblemPlans
	FixPlans
	PlanNowOff
	PlanNowAlways
	PlanNowAuto
	PlanNone
	PlanMade
	PlanEdited
	PlanDidEdit
	PlanDidAdd
	PlanDidMove
	PlanDidDrop
	PlanDidText
	PlanWaits
	PlanIsApproved
	PlanIsRejected
	PlanIsAnother
	PlanHint
	StandPlan
	PlanDoc
	PlanDocChanged

	outputKeys = iota + planKeys // where those of the next file begin
)

// planTexts are the messages of the keys above.
var planTexts = [outputKeys - planKeys]both{
	ProblemNoPlan - planKeys:  {"no plan waits for a decision in {session}", "{session} 세션에는 결정을 기다리는 계획이 없습니다"},
	FixNoPlan - planKeys:      {"Ask for one with: /plan WHAT", "계획을 요청하려면: /plan 할 일"},
	ProblemPlan - planKeys:    {"the plan stays as it is: {error}", "계획은 그대로입니다: {error}"},
	FixPlan - planKeys:        {"See it with: /plan show", "계획 보기: /plan show"},
	ProblemPlans - planKeys:   {"the plan has been made anew {n} {n?time/times}", "계획을 이미 {n}번 다시 세웠습니다"},
	FixPlans - planKeys:       {"Change it yourself with /plan edit, approve it or reject it; plan.retries in the settings bounds this.", "/plan edit로 직접 고치거나, 승인하거나 거부하십시오. 설정의 plan.retries가 이 횟수를 정합니다."},
	PlanNowOff - planKeys:     {"Plans: off. What you ask for is done at once, as the permission mode lets it; /plan WHAT has one thing planned.", "계획: off. 요청은 권한 모드에 따라 바로 수행합니다. /plan 할 일로 한 가지만 계획할 수 있습니다."},
	PlanNowAlways - planKeys:  {"Plans: always. Each request is planned first, and nothing is changed before you agree to a plan.", "계획: always. 요청마다 먼저 계획하고, 계획에 동의하기 전에는 아무것도 바꾸지 않습니다."},
	PlanNowAuto - planKeys:    {"Plans: auto. Requests with three points or 120 words are planned first, and others when the model wants to.", "계획: auto. 항목이 셋 이상이거나 120낱말 이상인 요청은 먼저 계획하고, 다른 요청은 모델이 원할 때 계획합니다."},
	PlanDoc - planKeys:        {"Plan", "계획"},
	PlanDocChanged - planKeys: {"Plan, changed", "바뀐 계획"},
	PlanNone - planKeys:       {"There is no plan yet.", "아직 계획이 없습니다."},
	PlanMade - planKeys:       {"a plan, {n} {n?step/steps}", "계획, {n}단계"},
	PlanEdited - planKeys:     {"the plan is changed: {what}", "계획이 바뀌었습니다: {what}"},
	PlanDidEdit - planKeys:    {"step {n} has another text", "{n}단계의 내용"},
	PlanDidAdd - planKeys:     {"a step is new", "단계 추가"},
	PlanDidMove - planKeys:    {"step {n} is step {to} now", "{n}단계를 {to}단계로"},
	PlanDidDrop - planKeys:    {"step {n} is taken out", "{n}단계 삭제"},
	PlanDidText - planKeys:    {"all of it is written anew", "전체를 새로 씀"},
	PlanWaits - planKeys:      {"It waits for your decision: /plan approve, reject or regenerate; edit, add, move and drop change it first.", "결정을 기다립니다: /plan approve, reject, regenerate. edit, add, move, drop으로 먼저 고칠 수 있습니다."},
	PlanIsApproved - planKeys: {"the plan is approved", "계획을 승인했습니다"},
	PlanIsRejected - planKeys: {"the plan is rejected", "계획을 거부했습니다"},
	PlanIsAnother - planKeys:  {"another plan is to be made", "계획을 다시 세웁니다"},
	PlanHint - planKeys:       {"/plan edit N TEXT, add [N] TEXT, move N M or drop N changes it first; /plan regenerate WHY asks for another.", "/plan edit N 내용, add [N] 내용, move N M, drop N으로 먼저 고칠 수 있고, /plan regenerate 이유로 다시 요청합니다."},
	StandPlan - planKeys:      {"Plan", "계획"},
}

// planProblem returns the messages of a problem about plans.
func planProblem(code agent.ProblemCode) (pair, bool) {
	switch code {
	case agent.ProblemNoPlan:
		return pair{ProblemNoPlan, FixNoPlan}, true
	case agent.ProblemPlan:
		return pair{ProblemPlan, FixPlan}, true
	case agent.ProblemPlans:
		return pair{ProblemPlans, FixPlans}, true
	}
	return pair{}, false
}

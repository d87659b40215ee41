package text

// The messages about what is scheduled.
const (
	HelpSchedule Key = iota + scheduleKeys
	HelpScheduleList
	HelpScheduleAdd
	HelpScheduleRemove
	HelpScheduleEnable
	HelpScheduleRun
	FlagZone
	FlagScheduleAgent
	ScheduleNone
	ScheduleAdded
	ScheduleRemoved
	ScheduleEnabled
	ScheduleUnknown
	ScheduleBad
	ScheduleNeeds
	FixSchedule
	FixScheduleID
	ScheduleNext
	ScheduleLast
	ScheduleOff
	ScheduleFails
	ScheduleRan
	ScheduleFailed
	SchedulesUnread
	ScheduleDisabled
	ScheduleWaits

	flagKeys = iota + scheduleKeys // where those of the next file begin
)

// scheduleTexts are the messages of the keys above.
var scheduleTexts = [flagKeys - scheduleKeys]both{
	HelpSchedule - scheduleKeys:       {"prompts that are sent at certain times", "정해진 때에 보내는 프롬프트"},
	HelpScheduleList - scheduleKeys:   {"list what is scheduled, with the next times", "예약 목록과 다음 시각 보기"},
	HelpScheduleAdd - scheduleKeys:    {"send a prompt again and again from this folder", "이 폴더에서 프롬프트를 되풀이해 보내기"},
	HelpScheduleRemove - scheduleKeys: {"forget a schedule", "예약 지우기"},
	HelpScheduleEnable - scheduleKeys: {"have a schedule run again that was disabled", "꺼진 예약을 다시 켜기"},
	HelpScheduleRun - scheduleKeys:    {"wait for the times of this folder, or run one schedule now", "이 폴더의 예약을 기다려 실행하거나, 예약 하나를 지금 실행하기"},
	FlagZone - scheduleKeys:           {"time zone, such as Asia/Seoul; default: that of the machine", "시간대 (예: Asia/Seoul). 기본값: 이 컴퓨터의 시간대"},
	FlagScheduleAgent - scheduleKeys:  {"agent that the sessions run as", "세션을 맡을 에이전트"},
	ScheduleNone - scheduleKeys:       {"Nothing is scheduled.", "예약이 없습니다."},
	ScheduleAdded - scheduleKeys:      {"{id} is next at {time}; it runs while dure schedule run, dure bundle run or an interactive dure works in {path}", "{id} 다음 시각 {time}. {path}에서 dure schedule run, dure bundle run 또는 대화 중인 dure가 도는 동안 실행됩니다"},
	ScheduleRemoved - scheduleKeys:    {"{id} is removed", "{id|을/를} 지웠습니다"},
	ScheduleEnabled - scheduleKeys:    {"{id} runs again", "{id|을/를} 다시 켰습니다"},
	ScheduleUnknown - scheduleKeys:    {"there is no schedule {id}", "{id|이라는/라는} 예약이 없습니다"},
	ScheduleBad - scheduleKeys:        {"the schedule is not taken: {error}", "예약할 수 없습니다: {error}"},
	ScheduleNeeds - scheduleKeys:      {"a schedule needs its times and a prompt", "예약에는 시각과 프롬프트가 필요합니다"},
	FixSchedule - scheduleKeys:        {"For example: dure schedule add '0 9 * * mon-fri' 'Summarise what was merged yesterday.'", "예: dure schedule add '0 9 * * mon-fri' '어제 병합된 것을 요약해 줘.'"},
	FixScheduleID - scheduleKeys:      {"IDs are listed by: dure schedule list", "ID는 dure schedule list가 보여 줍니다."},
	ScheduleNext - scheduleKeys:       {"next: {times}", "다음: {times}"},
	ScheduleLast - scheduleKeys:       {"last: {time}, session {session}", "지난번: {time}, 세션 {session}"},
	ScheduleOff - scheduleKeys:        {"disabled after {n} failures; dure schedule enable {id} has it run again", "{n}번 실패해 꺼짐. dure schedule enable {id|으로/로} 다시 켭니다"},
	ScheduleFails - scheduleKeys:      {"failed {n} {n?time/times} in a row: {error}", "연달아 {n}번 실패: {error}"},
	ScheduleRan - scheduleKeys:        {"schedule {id}: done in session {session}", "예약 {id}: 세션 {session}에서 마침"},
	ScheduleFailed - scheduleKeys:     {"schedule {id} failed: {error}", "예약 {id} 실패: {error}"},
	SchedulesUnread - scheduleKeys:    {"the schedules cannot be read: {error}", "예약을 읽을 수 없습니다: {error}"},
	ScheduleDisabled - scheduleKeys:   {"schedule {id} is disabled: it failed too often", "예약 {id|이/가} 너무 자주 실패해 꺼졌습니다"},
	ScheduleWaits - scheduleKeys:      {"waiting; the next time is {time}", "기다립니다. 다음 시각: {time}"},
}

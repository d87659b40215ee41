package text

// The messages about what is done around a turn without being asked for: what is read
// with an input, and what is learnt of a task.
const (
	ContextLeft Key = careKeys + iota
	ContextOn
	ContextOff
	FlagPlain
	HelpLessons
	HelpForget
	HelpLearn
	HelpChecklist
	FlagAllLessons
	LessonsWhich
	LessonsText
	LessonsDeleted
	LessonsAdded
	LessonsNone
	LessonGood
	LessonBad
	LessonsUnknown
	FixLessons

	replayKeys = iota + careKeys // where those of the next file begin
)

// careTexts are the messages of the keys above, in English and Korean.
var careTexts = [replayKeys - careKeys]both{
	ContextLeft - careKeys:    {"not read: {what}", "읽지 않음: {what}"},
	ContextOn - careKeys:      {"files that you name are read with what you write", "이름을 쓴 파일을 함께 읽습니다"},
	ContextOff - careKeys:     {"only files with an @ before them are read with what you write", "@를 붙인 파일만 함께 읽습니다"},
	FlagPlain - careKeys:      {"read no files that are named without an @", "@ 없이 이름만 쓴 파일은 읽지 않기"},
	HelpLessons - careKeys:    {"what was learnt from past tasks", "지난 작업에서 배운 것"},
	HelpForget - careKeys:     {"forget lessons: those of a type, one by its ID, or --all", "교훈 지우기: 종류, ID, 또는 --all"},
	HelpLearn - careKeys:      {"keep a lesson of your own", "직접 쓴 교훈 남기기"},
	HelpChecklist - careKeys:  {"what the model checks after a change: the file to edit", "바뀐 뒤 모델이 확인하는 것: 고칠 파일"},
	FlagAllLessons - careKeys: {"all of them", "모두"},
	LessonsWhich - careKeys:   {"name a type or an ID, or say --all, and not both", "종류나 ID를 쓰거나 --all을 쓰되, 함께 쓰지는 마십시오"},
	LessonsText - careKeys:    {"a lesson needs a type and a text: dure lessons add test 'Run the tests first.'", "교훈에는 종류와 글이 필요합니다: dure lessons add test '테스트부터 실행한다.'"},
	LessonsDeleted - careKeys: {"lessons forgotten: {n}", "지운 교훈: {n}"},
	LessonsAdded - careKeys:   {"kept; sessions that begin with a task of type {type} read it", "남겼습니다. {type} 작업으로 시작하는 세션이 읽습니다"},
	LessonsNone - careKeys:    {"Nothing was learnt yet.", "아직 배운 것이 없습니다."},
	LessonGood - careKeys:     {"went well", "잘됨"},
	LessonBad - careKeys:      {"went badly", "잘 안됨"},
	LessonsUnknown - careKeys: {"{what}: neither a type of tasks nor the ID of a lesson", "{what}: 작업 종류도 교훈의 ID도 아닙니다"},
	FixLessons - careKeys:     {"The types are {list}. IDs are listed by: dure lessons", "종류는 {list}입니다. ID는 dure lessons가 보여 줍니다."},
}

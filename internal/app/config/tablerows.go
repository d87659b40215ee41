package config

// row makes a key.
func row(path string, t Type, who Who, def, en, ko string, among ...string) Key {
	return Key{Path: path, Type: t, Who: who, Default: def, Among: among, Means: [2]string{en, ko}}
}

func (k Key) within(least, most float64) Key { k.Least, k.Most = least, most; return k }

func (k Key) live() Key { k.Live = true; return k }

func (k Key) hidden() Key { k.Secret = true; return k }

// modelKeys are about models, and what they are asked for.
func modelKeys() []Key {
	return []Key{
		row("model", Text, AnyLayer, `"`+DefaultModel+`"`, "the model", "모델"),
		row("effort", Text, AnyLayer, "", "how much the model thinks", "모델이 생각하는 정도", efforts...),
		row("fallbackModel", Text, AnyLayer, "", "models to ask when the first has failed for good, separated by commas", "첫 모델이 끝내 실패하면 물을 모델들, 쉼표로 나눔"),
		row("smallModel", Text, AnyLayer, "", "the model for small work", "작은 일에 쓸 모델"),
		row("profile", Text, AnyLayer, `"code"`, "the kind of work: chat, cowork, code, finance, or one of your own", "작업 종류: chat, cowork, code, finance 또는 직접 정한 것"),
		row("profiles.*.model", Text, AnyLayer, "", "the model of a kind of work", "작업 종류별 모델"),
		row("profiles.*.effort", Text, AnyLayer, "", "how much the model thinks in a kind of work", "작업 종류별로 생각하는 정도", efforts...),
		row("profiles.*.base", Text, OwnLayer, "", "the profile that a new one rests on", "새 작업 종류가 바탕으로 삼는 것"),
		row("profiles.*.fallbackModel", Text, OwnLayer, "", "as fallbackModel, for a kind of work", "작업 종류별 fallbackModel"),
		row("profiles.*.steps", Count, OwnLayer, "", "as maxSteps, for a kind of work", "작업 종류별 maxSteps"),
		row("profiles.*.mode", Text, OwnLayer, "", "as permissions.defaultMode, for a kind of work", "작업 종류별 permissions.defaultMode", modes...),
		row("profiles.*.plan", Text, OwnLayer, "", "as plan.mode, for a kind of work", "작업 종류별 plan.mode", planModes...),
		row("profiles.*.verification", Switch, OwnLayer, "", "the agent proves what it did", "에이전트가 한 일을 증명함"),
		row("profiles.*.budget.usd", Number, OwnLayer, "", "as budget.usd, for a kind of work", "작업 종류별 budget.usd"),
		row("profiles.*.budget.tokens", Count, OwnLayer, "", "as budget.tokens, for a kind of work", "작업 종류별 budget.tokens"),
		row("profiles.*.tools", Texts, OwnLayer, "", "tools that the model has: names, group:NAME, read-only, all", "모델이 쓰는 도구: 이름, group:이름, read-only, all"),
		row("profiles.*.prompt", Text, OwnLayer, "", "your own text in the place of what dure says of itself", "dure의 설명 자리에 둘 직접 쓴 글"),
		row("profiles.*.append", Text, TrustedOnly, "", "your own text behind the system prompt", "시스템 프롬프트 뒤에 둘 직접 쓴 글"),
		row("ai", Switch, TighterOnly, "true", "models are asked", "모델에 물음"),
		row("baseUrl", Text, OwnLayer, "", "address of the model's service", "모델 서비스의 주소"),
		row("providers.*.type", Text, OwnLayer, "", "the protocol of a provider", "제공자의 규약", protocols...),
		row("providers.*.baseUrl", Text, OwnLayer, "", "the address of a provider", "제공자의 주소"),
		row("providers.*.keyEnv", Text, OwnLayer, "", "the variable that holds its key", "키가 든 환경 변수"),
		row("providers.*.headers", Strings, OwnLayer, "", "headers to send with each request", "요청마다 보낼 헤더").hidden(),
		row("providers.*.model", Text, OwnLayer, "", "its model when none is named", "모델을 정하지 않았을 때의 모델"),
		row("models", List, OwnLayer, "", "models beyond the catalog's own", "목록에 더할 모델"),
		row("limits.retries", Count, AnyLayer, "", "how often a request is tried", "요청을 시도하는 횟수").within(1, maxRetries),
		row("limits.header", Text, AnyLayer, "", "how long to wait for an answer: 90s, 5m", "대답이 시작되기를 기다리는 시간: 90s, 5m"),
		row("limits.idle", Text, AnyLayer, "", "how long an answer may be silent", "대답이 멈춰도 되는 시간"),
		row("limits.ping", Text, AnyLayer, "", "how long only pings may arrive", "핑만 와도 되는 시간"),
		row("maxSteps", Count, TighterOnly, "0", "steps of a turn; 0 = no limit", "한 차례의 단계 수, 0 = 제한 없음").within(0, 1<<31-1),
		row("budget.usd", Number, TighterOnly, "0", "US dollars that a session may use; 0 = no limit", "세션이 쓸 수 있는 미국 달러, 0 = 제한 없음").within(0, maxDollars),
		row("budget.tokens", Count, TighterOnly, "0", "tokens that a session may use; 0 = no limit", "세션이 쓸 수 있는 토큰, 0 = 제한 없음").within(0, 1<<53),
	}
}

// talkKeys are about the conversation, and what goes into it.
func talkKeys() []Key {
	return []Key{
		row("user.name", Text, OwnLayer, "", "your name, for the agent", "에이전트에게 알릴 이름"),
		row("user.about", Text, OwnLayer, "", "what the agent is told of you", "에이전트에게 알릴 나에 관한 것"),
		row("investment.riskTolerance", Text, OwnLayer, "", "how much risk you bear", "감수하는 위험", "conservative", "moderate", "aggressive"),
		row("investment.preferredMarkets", Texts, OwnLayer, "", "markets that you invest in", "투자하는 시장"),
		row("investment.complianceLevel", Text, OwnLayer, `"retail"`, "the rules that you fall under", "적용되는 규정", "retail", "professional", "institutional"),
		row("compact.auto", Switch, AnyLayer, "true", "conversations are shortened by themselves", "대화를 스스로 줄임"),
		row("compact.threshold", Number, AnyLayer, "0.8", "share of the window at which they are", "대화를 줄이기 시작하는 창의 비율").within(0.2, 0.95),
		row("compact.strategy", Text, AnyLayer, "", "how they are shortened", "대화를 줄이는 방법", strategies...),
		row("compact.recent", Count, AnyLayer, "5", "newest messages that stay", "그대로 두는 최근 메시지 수").within(1, 1000),
		row("taskState", Switch, AnyLayer, "true", "the agent keeps notes on its work", "에이전트가 작업을 적어 둠"),
		row("retention.days", Count, OwnLayer, "30", "days without a change until a session is old; 0 = never", "세션이 오래된 것이 되는 날수, 0 = 없음").within(0, 36_500),
		row("retention.auto", Switch, OwnLayer, "false", "old sessions are deleted without a question", "오래된 세션을 묻지 않고 지움"),
		row("context.auto", Switch, TighterOnly, "true", "files that you name are read with what you write", "이름을 쓴 파일을 함께 읽음"),
		row("transcripts.mirror", Text, OwnLayer, `"sdk"`, "sessions that are also written where programs for agent sessions look for them: off, those of such programs, all", "에이전트 세션용 프로그램이 찾는 곳에도 쓸 세션: off, 그런 프로그램의 것, 모두", "off", "sdk", "all"),
		row("reflexion.enabled", Switch, TighterOnly, "true", "lessons of past tasks are kept and read", "지난 작업의 교훈을 남기고 읽음"),
		row("reflexion.evaluateOnSuccess", Switch, TighterOnly, "true", "also of those that went well", "잘된 작업의 교훈도"),
		row("reflexion.maxEntries", Count, TighterOnly, "5", "past tasks whose lessons a session begins with", "세션이 시작할 때 읽는 지난 작업 수").within(0, maxLessons),
		row("plan.mode", Text, TighterOnly, `"off"`, "when the agent plans before it does anything", "무엇을 하기 전에 계획을 세우는 때", planModes...),
		row("plan.retries", Count, TighterOnly, "3", "how often in a row a plan may be made anew", "계획을 잇달아 다시 세울 수 있는 횟수").within(0, maxPlanRetries),
		row("verification.enabled", Switch, TighterOnly, "true", "changes may be verified", "바뀐 것을 확인할 수 있음"),
		row("verification.cowork", Switch, TighterOnly, "true", "in profile cowork", "cowork에서"),
		row("verification.code", Switch, TighterOnly, "true", "in profile code", "code에서"),
		row("memory.enabled", Switch, OwnLayer, "true", "instruction files are read", "지침 파일을 읽음"),
		row("memory.user", Text, OwnLayer, "", "a file in the place of AGENTS.md in your folder", "내 폴더의 AGENTS.md 대신 쓸 파일"),
		row("memory.depth", Count, OwnLayer, "5", "how many files may include one another", "서로 포함할 수 있는 파일 수").within(1, 5),
		row("memory.maxChars", Count, OwnLayer, "200000", "characters of all of them together", "모두 합한 글자 수").within(minMemory, maxMemory),
		row("memory.excludes", Texts, TrustedOnly, "", "patterns of paths that are not read", "읽지 않을 경로의 패턴"),
		row("claudeMdExcludes", Texts, TrustedOnly, "", "as memory.excludes", "memory.excludes와 같음"),
		row("memory.outside", Switch, OwnLayer, "false", "files of a trusted project may include others from outside", "신뢰한 프로젝트의 파일이 밖의 것을 포함할 수 있음"),
		row("worktree.baseRef", Text, TrustedOnly, `"head"`, "where the work trees of agents begin", "에이전트의 작업 트리가 시작하는 곳", baseRefs...),
		row("worktree.symlinkDirectories", Texts, TrustedOnly, "", "folders that they have links to", "링크로 두는 폴더"),
		row("worktree.sparsePaths", Texts, TrustedOnly, "", "folders that they have alone", "그것만 두는 폴더"),
		row("outputStyle", Text, AnyLayer, "", "the style of answers", "대답의 방식"),
		row("agent", Text, TrustedOnly, "", "the agent that sessions begin with", "세션이 시작하는 에이전트"),
	}
}

// accessKeys are about what may be done.
func accessKeys() []Key {
	return []Key{
		row("permissions.defaultMode", Text, TrustedOnly, `"default"`, "what is asked about", "무엇을 묻는지", modes...),
		row("permissions.deny", RuleSet, AnyLayer, "", "rules of what is denied", "거부할 것의 규칙").live(),
		row("permissions.ask", RuleSet, AnyLayer, "", "rules of what is asked about", "물어볼 것의 규칙").live(),
		row("permissions.allow", RuleSet, TrustedOnly, "", "rules of what is allowed", "허용할 것의 규칙").live(),
		row("permissions.rules", RuleSet, TrustedOnly, "", "rules that say themselves what they do", "무엇을 하는지 스스로 말하는 규칙").live(),
		row("permissions.additionalDirectories", Texts, TrustedOnly, "", "folders that count as the workspace", "작업 공간으로 치는 폴더"),
		row("permissions.safeVars", Texts, TrustedOnly, "", "variables that may be set before an allowed command", "허용한 명령 앞에 둘 수 있는 변수").live(),
		row("permissions.managedOnly", Switch, AdminOnly, "false", "allow rules of other layers do not count", "다른 설정의 허용 규칙은 세지 않음").live(),
		row("allowManagedPermissionRulesOnly", Switch, AdminOnly, "false", "as permissions.managedOnly", "permissions.managedOnly와 같음").live(),
		row("permissions.disableBypassPermissionsMode", Text, AnyLayer, "", "there is no mode bypassPermissions", "bypassPermissions 모드를 없앰", "disable").live(),
		row("disabledTools", Texts, AnyLayer, "", "tools that no model has", "모델에 주지 않는 도구").live(),
		row("sandbox.mode", Text, TighterOnly, `"auto"`, "commands are confined, or not", "명령을 가둘지", "auto", "off"),
		row("sandbox.managedOnly", Switch, AdminOnly, "false", "nobody else loosens the sandbox", "다른 누구도 샌드박스를 느슨하게 하지 못함"),
		row("sandbox.write", Texts, OwnLayer, "", "folders that commands may write beside the workspace", "명령이 작업 공간 밖에 쓸 수 있는 폴더"),
		row("sandbox.allowRead", Texts, OwnLayer, "", "what commands may read of what is hidden", "감춘 것 가운데 명령이 읽을 수 있는 것"),
		row("sandbox.denyRead", Texts, AnyLayer, "", "what commands cannot read", "명령이 읽지 못하는 것"),
		row("sandbox.protect", Texts, AnyLayer, "", "what stays as it is", "그대로 두는 것"),
		row("sandbox.env", Texts, OwnLayer, "", "variables that commands inherit although they look like secrets", "비밀처럼 보여도 명령이 물려받는 변수"),
		row("sandbox.network.allow", Texts, OwnLayer, "", "hosts that commands reach", "명령이 닿을 수 있는 호스트"),
		row("sandbox.network.deny", Texts, AnyLayer, "", "hosts that commands do not reach", "명령이 닿지 못하는 호스트"),
		row("sandbox.network.allowPrivate", Switch, TighterOnly, "false", "names may lead into private networks", "이름이 사설망으로 이어져도 됨"),
		row("sandbox.limits.processes", Count, OwnLayer, "", "processes at a time; -1 = no limit", "동시에 도는 프로세스 수, -1 = 제한 없음").within(-1, 1<<20),
		row("sandbox.limits.openFiles", Count, OwnLayer, "", "open files of a process; -1 = no limit", "프로세스가 여는 파일 수, -1 = 제한 없음").within(-1, 1<<20),
		row("sandbox.limits.memory", Text, OwnLayer, "", "memory of a process: 512MiB, 4GiB, none", "프로세스의 메모리: 512MiB, 4GiB, none"),
		row("sandbox.limits.fileSize", Text, OwnLayer, "", "size of a written file: 512MiB, 4GiB, none", "쓰는 파일의 크기: 512MiB, 4GiB, none"),
		row("scrubEnv", Texts, TighterOnly, "", "variables that commands do not inherit; NAME or PREFIX*", "명령이 물려받지 않는 변수, 이름 또는 앞부분*"),
		row("env", Strings, TrustedOnly, "", "variables for commands", "명령에 줄 변수").hidden(),
		row("trust.mode", Text, TighterOnly, `"ask"`, "whether you are asked about folders", "폴더를 물어볼지", TrustAsk, TrustNever),
		row("guard.patterns", List, AnyLayer, "", "forms of secrets that results are cleaned of", "결과에서 지울 비밀의 꼴"),
	}
}

// extendKeys are about what extends the program.
func extendKeys() []Key {
	return []Key{
		row("hooks", Object, TrustedOnly, "", "what runs at the moments of a session", "세션의 순간마다 실행할 것").live(),
		row("disableAllHooks", Switch, TrustedOnly, "false", "no hooks run", "훅을 실행하지 않음").live(),
		row("allowManagedHooksOnly", Switch, AdminOnly, "false", "only the administrator's hooks run", "관리자의 훅만 실행함").live(),
		row("allowedHttpHookUrls", Texts, TrustedOnly, "", "addresses that hooks may post to", "훅이 보낼 수 있는 주소").live(),
		row("httpHookAllowedEnvVars", Texts, TrustedOnly, "", "variables that hooks may send", "훅이 보낼 수 있는 변수").live(),
		row("hookEnvVars", Texts, OwnLayer, "", "variables that hooks may leave behind although they decide which programs run", "어떤 프로그램이 도는지 정하더라도 훅이 남길 수 있는 변수").live(),
		row("mcpServers", Object, TrustedOnly, "", "servers of the Model Context Protocol, by name", "MCP 서버, 이름별").hidden(),
		row("enabledMcpjsonServers", Texts, OwnLayer, "", "servers of projects that are used without a question", "묻지 않고 쓸 프로젝트의 MCP 서버"),
		row("disabledMcpjsonServers", Texts, AnyLayer, "", "servers of projects that are not used", "쓰지 않을 프로젝트의 MCP 서버"),
		row("enableAllProjectMcpServers", Switch, OwnLayer, "false", "all servers of trusted projects are used without a question", "신뢰한 프로젝트의 MCP 서버를 묻지 않고 모두 씀"),
		row("allowedMcpServers", List, AdminOnly, "", "the only servers that there are: serverName, serverCommand or serverUrl", "이것뿐인 MCP 서버: serverName, serverCommand, serverUrl"),
		row("deniedMcpServers", List, AnyLayer, "", "servers that are not used: serverName, serverCommand or serverUrl", "쓰지 않을 MCP 서버: serverName, serverCommand, serverUrl"),
		row("allowManagedMcpServersOnly", Switch, AdminOnly, "false", "allowedMcpServers holds, and only the administrator names servers", "관리자가 정한 MCP 서버만 씀"),
		row("enabledPlugins", Switches, TrustedOnly, "", "plugins that are on, or off, by name@marketplace", "켜거나 끌 플러그인, 이름@마켓"),
		row("pluginConfigs", Object, OwnLayer, "", "what plugins are set to", "플러그인 설정").hidden(),
		row("extraKnownMarketplaces", Object, TrustedOnly, "", "marketplaces beside the known ones", "더할 마켓플레이스"),
		row("strictKnownMarketplaces", List, AdminOnly, "", "the only marketplaces that there are", "이것뿐인 마켓플레이스"),
		row("blockedMarketplaces", List, AnyLayer, "", "marketplaces that nothing is taken from", "막은 마켓플레이스"),
		row("skillOverrides", Strings, TighterOnly, "", "skills that are hidden: on, name-only, user-invocable-only, off", "감출 스킬: on, name-only, user-invocable-only, off"),
		row("skillListingBudgetFraction", Number, TrustedOnly, "0.01", "share of the window that the list of skills may take", "스킬 목록이 차지할 창의 비율").within(0, 1),
		row("skillListingMaxDescChars", Count, TrustedOnly, "1536", "characters of the description of a skill in the list", "목록에서 스킬 설명의 글자 수").within(1, maxSkillText),
		row("disableBundledSkills", Switch, TrustedOnly, "false", "the skills that come with dure are off", "dure의 스킬을 끔"),
		row("disableSkillShellExecution", Switch, TighterOnly, "false", "skills run no commands while they are read", "스킬을 읽을 때 명령을 실행하지 않음"),
	}
}

// otherKeys are the rest.
func otherKeys() []Key {
	return []Key{
		row("network.mode", Text, TighterOnly, `"external"`, "how far dure itself reaches", "dure가 닿는 범위", networkModes...),
		row("network.proxy", Text, OwnLayer, "", "the proxy", "프록시").hidden(),
		row("network.noProxy", Text, OwnLayer, "", "hosts that are reached without it", "프록시 없이 닿는 호스트"),
		row("network.ca", Text, OwnLayer, "", "a file of certificates that are trusted beside the system's", "시스템 밖에 더 믿을 인증서 파일"),
		row("network.allowHosts", Texts, OwnLayer, "", "hosts of mode internal", "internal에서 닿는 호스트"),
		row("search.kind", Text, OwnLayer, "", "the endpoint of web searches", "웹 검색의 종류", searchKinds...),
		row("search.url", Text, OwnLayer, "", "its address", "그 주소"),
		row("search.keyEnv", Text, OwnLayer, "", "the variable that holds its key", "그 키가 든 환경 변수"),
		row("updates.check", Switch, OwnLayer, "false", "newer versions are looked for", "새 버전을 찾아봄"),
		row("updates.url", Text, OwnLayer, "", "where they are looked for", "찾아볼 주소"),
		row("checkpoints", Switch, TighterOnly, "true", "what is changed is kept, and can be put back", "바꾸기 전의 것을 남겨 되돌릴 수 있음"),
		row("toolSearch", Text, AnyLayer, `"auto"`, "when tools of MCP servers and the like are only named, and loaded when needed: auto, auto:N (percent of the window), true, false", "MCP 서버 등의 도구를 이름만 알리고 필요할 때 불러오는 때: auto, auto:N (창의 퍼센트), true, false"),
		row("dialect", Text, AnyLayer, `"claude"`, "names of tools", "도구의 이름", "claude", "dure"),
		row("language", Text, AnyLayer, "", "the language of the program", "프로그램의 언어", "en", "ko"),
		row("lanes.*.turns", Count, OwnLayer, "", "turns of a lane at once", "한 레인에서 한꺼번에 도는 차례 수").within(1, maxTurns),
		row("lanes.*.queue", Count, OwnLayer, "1000", "turns that may wait for the lane", "레인을 기다릴 수 있는 차례 수").within(1, maxWaiting),
		row("telemetry.enabled", Switch, OwnLayer, "false", "collectors of OpenTelemetry are told what sessions do", "세션이 하는 일을 OpenTelemetry 수집기에 알림"),
		row("telemetry.signals", Text, OwnLayer, "", "which signals: traces, metrics, logs, separated by commas", "보낼 신호: traces, metrics, logs, 쉼표로 나눔"),
		row("telemetry.endpoint", Text, OwnLayer, `"`+usualCollector+`"`, "the address of the collector", "수집기의 주소"),
		row("telemetry.protocol", Text, OwnLayer, `"http/protobuf"`, "how it is spoken to", "수집기와 말하는 방법", telemetryProtocols...),
		row("telemetry.headers", Strings, OwnLayer, "", "headers to send with each request to it", "수집기에 요청마다 보낼 헤더").hidden(),
		row("telemetry.compression", Text, OwnLayer, `"none"`, "how requests to it are packed", "수집기 요청의 압축", telemetryPacked...),
		row("telemetry.timeout", Text, OwnLayer, `"10s"`, "how long it may take to answer: 500ms, 10s", "수집기의 대답을 기다리는 시간: 500ms, 10s"),
		row("telemetry.insecure", Switch, OwnLayer, "false", "it may be on another machine without encryption", "다른 기계의 수집기에 암호화 없이 보내도 됨"),
		row("telemetry.content", Text, OwnLayer, `"off"`, "where it is told what is said", "오간 말을 어디에 담을지", telemetryContents...),
		row("telemetry.service", Text, OwnLayer, `"dure"`, "the name under which records come", "기록에 붙는 이름"),
		row("telemetry.resource", Strings, OwnLayer, "", "attributes of all records", "모든 기록에 붙일 속성"),
		row("telemetry.temporality", Text, OwnLayer, `"cumulative"`, "what figures count from: the start, or the last report", "수치를 세는 시작점: 처음부터, 또는 지난 보고부터", telemetryCounts...),
		row("telemetry.sample", Number, OwnLayer, "1", "share of the traces that are sent", "보낼 추적의 비율").within(0, 1),
		row("telemetry.exit", Text, OwnLayer, `"2s"`, "how long the end of the program may be late for it", "끝날 때 보내기를 기다리는 시간"),
		row("telemetry.ca", Text, OwnLayer, "", "a file of certificates by which it is known", "수집기를 확인할 인증서 파일"),
		row("telemetry.cert", Text, OwnLayer, "", "a file of the certificate that it is shown", "수집기에 보일 인증서 파일"),
		row("telemetry.certKey", Text, OwnLayer, "", "a file of the key of that certificate", "그 인증서의 키 파일"),
		row("durability", Text, OwnLayer, `"barrier"`, "what the log survives", "기록이 견디는 것", "barrier", "always", "os"),
		row("notify", Text, OwnLayer, `"off"`, "how you are told that a turn has ended or a question waits", "턴이 끝났거나 물음이 기다릴 때 알리는 방법", notices...),
		row("$schema", Text, AnyLayer, "", "nothing: it is for editors", "편집기를 위한 것"),
	}
}

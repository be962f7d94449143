"""What secrets look like: tokens by their form, values by the name before them, and words of commands that take one. Pure."""

EDGE = r"(?:\b|_|\\(?:[nrtbf]|u[0-9a-f]{4}))"
"""Where a name or token begins: also behind a line end or tab that is spelled out, as in JSON inside a text."""
_QUOTES = r"(?:\\*[\"'])+"
"""One quote or more, as a line looks that was quoted for another."""
_OPEN = rf"(?:\$?{_QUOTES})?"
_IS = rf"(?:{_QUOTES}\]?)?(?:[\]}}]=|\s*(?:=>|:=|[=:])|%3[AaDd](?:%20|\+)?)\s*{_OPEN}"
"""What stands between a name and its value in configuration, headers, code, JSON and URLs, however often it was quoted."""
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NEXT = rf"(?:\s+|{_QUOTES},\s*{_QUOTES}){_OPEN}"
"""Between two words of a line, or of an argument vector as JSON and code spell it."""
_WORDS = r"\b[^|;&\n]*?"
"""Other words of the same command."""
_WORD = r"[^\s\"'\\|;&<>(){}$]"
_FIRST = r"[^\s\"'\\|;&<>(){}$-]"
"""One character of a word, and the first one of a word that is no option."""

TOKENS: tuple[tuple[str, str], ...] = (
    ("aws-key-id", EDGE + r"((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})"),
    ("aws-bedrock", EDGE + r"(ABSK[0-9A-Za-z+/]{40,}={0,2})"),
    ("github", r"gh[pousr]_[0-9A-Za-z][0-9A-Za-z_.-]{35,}|github_pat_[0-9A-Za-z_]{22,255}"),
    ("gitlab", r"gl(?:pat|dt|rt|rtr|ft|soat|oas|cbt|ptt|agent|ffct|imt|wt)-[0-9A-Za-z_-]{20,}(?:\.[0-9A-Za-z_-]{2,})*"),
    ("slack", r"xox[a-z]-[0-9A-Za-z%-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,}"),
    ("google", r"AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}"),
    ("google-refresh", EDGE + r"(1//0[0-9A-Za-z_-]{40,})"),
    ("stripe", r"[rs]k_(?:org_)?(?:live|test|sbox)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z]{16,}"),
    (
        "model-api",
        EDGE + r"(sk-(?:ant-|proj-|svcacct-|or-v1-)?[0-9A-Za-z_-]{20,})|sk-(?:ant|proj|svcacct)-[0-9A-Za-z_-]{20,}",
    ),
    (
        "package-index",
        (
            r"pypi-[0-9A-Za-z_-]{50,}|npm_[0-9A-Za-z]{36}|dckr_[op]at_[0-9A-Za-z_-]{20,}|rubygems_[0-9a-f]{48}"
            r"|AKCp[0-9A-Za-z]{60,}|cmVmd[0-9A-Za-z]{59}|\boy2[0-9a-z]{43}\b|\bcio[0-9A-Za-z]{32}\b"
        ),
    ),
    ("hugging-face", r"hf_[0-9A-Za-z]{30,}"),
    ("sendgrid", r"SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}"),
    ("digitalocean", r"do[opr]_v1_[0-9a-f]{64}"),
    (
        "azure",
        (
            r"(?i)(?:AccountKey|SharedAccessKey)=[0-9a-z+/]{40,}={0,2}"
            r"|[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=[0-9a-z%+/]{30,}"
        ),
    ),
    ("azure-secret", r"[0-9A-Za-z_~.-]{3}[78]Q~[0-9A-Za-z_~.-]{31,34}"),
    ("azure-key", r"[0-9A-Za-z+/]{40,}(?:AZDO|\+ASt|ACDb|AzSe|AzFu|AIoT|APIM|\+ACR|JQQJ)[0-9A-Za-z+/]{4,8}={0,2}"),
    (
        "hooks",
        (
            r"hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z/]{20,}"
            r"|discord(?:app)?\.com/api/webhooks/[0-9]+/[0-9A-Za-z_-]{40,}"
            r"|webhook\.office\.com/webhookb2/[0-9A-Za-z@/-]{60,}|hooks\.zapier\.com/hooks/catch/[0-9A-Za-z/]{10,}"
            r"|mcp\.zapier\.com/api/mcp/[a-z]/[0-9A-Za-z_=-]{30,}"
        ),
    ),
    ("chat", r"[0-9]{8,10}:AA[0-9A-Za-z_-]{33}|[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}"),
    (
        "named",
        (
            r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|lin_api_[0-9A-Za-z]{32,}|NRAK-[0-9A-Z]{27}|figd_[0-9A-Za-z_-]{30,}"
            r"|AT(?:ATT3|CTT3|STT3|BB)[0-9A-Za-z_=-]{28,}|pscale_(?:tkn|pw|oauth)_[0-9A-Za-z_-]{30,}"
            r"|fm[12]_[0-9A-Za-z+/=_-]{40,}|gsk_[0-9A-Za-z]{40,}|xai-[0-9A-Za-z]{60,}|sbp_[0-9a-f]{40}"
            r"|sntr[yu]s_[0-9A-Za-z_=+/-]{40,}|sntryu_[0-9a-f]{64}|tskey-[a-z]+-[0-9A-Za-z-]{20,}"
            r"|nvapi-[0-9A-Za-z_-]{40,}|r8_[0-9A-Za-z]{30,}|pplx-[0-9A-Za-z]{40,}|ntn_[0-9A-Za-z]{40,}|pul-[0-9a-f]{40}"
            r"|CCIPAT_[0-9A-Za-z_]{40,}|sgp_[0-9a-f_]{40,}|bk[a-z]{2}_[0-9a-f]{40}|sb_secret_[0-9A-Za-z_-]{20,}"
            r"|ops_eyJ[0-9A-Za-z_-]{100,}|HRKU-[0-9A-Za-z_-]{30,}|vercel_blob_rw_[0-9A-Za-z_]{30,}"
            r"|glc_[0-9A-Za-z+/]{32,}={0,2}|dt0[a-z][0-9]{2}\.[0-9A-Z]{24}\.[0-9A-Z]{64}"
            r"|snyk_[a-z]{3}\.[0-9A-Za-z]{8}\.[0-9A-Za-z_-]{40,}|pcsk_[0-9A-Za-z_]{50,}|wandb_v1_[0-9A-Za-z_-]{40,}"
            r"|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|tvly-(?:dev-|prod-)?[0-9A-Za-z]{30,}|crsr_[0-9a-f]{64}"
            r"|xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}|CFPAT-[0-9A-Za-z_-]{43}|rzp_(?:live|test)_[0-9A-Za-z]{14}"
            r"|(?:shippo|duffel)_(?:live|test)_[0-9A-Za-z_-]{40,}|FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,}-X"
            r"|access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"
            r"|fo1_[0-9A-Za-z_-]{43}|fm1[ar]_[0-9A-Za-z+/]{40,}={0,3}|CLOJARS_[0-9a-z]{60}|s-s4t2(?:ud|af)-[0-9a-f]{64}"
            r"|eyJrIjoi[0-9A-Za-z+/]{60,}={0,3}|NRII-[0-9A-Za-z_-]{32}|sha256~[0-9A-Za-z_-]{43}|CCIPRJ_[0-9A-Za-z_]{40,}"
            r"|mlsn\.[0-9a-f]{64}|signkey-[a-z]+-[0-9a-f]{64}|packagist_[a-z]{3}_[0-9a-f]{68}|GR1348941[0-9A-Za-z_-]{20}"
            r"|sktsec_[0-9A-Za-z_-]{40,}|bce-v3/ALTAK-[0-9A-Za-z]{21}/[0-9a-f]{40}|pdl_[a-z]+_apikey_[0-9A-Za-z_]{40,}"
            r"|polar_[a-z]{2,4}_[0-9A-Za-z]{30,}|amzn1\.oa2-cs\.v1\.[0-9a-f]{64}|Atz[ar]\|[0-9A-Za-z_-]{60,}"
            r"|(?:IQoJb3JpZ2lu|F[Qw]oGZXIvYXdz)[0-9A-Za-z+/=]{60,}|:APA91b[0-9A-Za-z_-]{100,}"
            r"|K10[0-9a-f]{64}::[a-z-]+:[0-9A-Za-z.]{16,}|kubeconfig-[0-9a-z.-]+:[0-9a-z]{54}|xprv[0-9A-Za-z]{100,}"
            r"|SWMTKN-1-[0-9a-z]{40,}-[0-9a-z]{25}|api_org_[0-9A-Za-z]{34}|pylf_v[0-9]_[a-z]+_[0-9A-Za-z]{40,}"
            r"|secret-(?:live|test)-[0-9A-Za-z_-]{36}=|GOOG1E[0-9A-Z]{50,}|bb_live_[0-9A-Za-z_-]{25,}|tk-(?:us|eu)-[0-9A-Za-z_-]{48}"
        ),
    ),
    (
        "short-prefix",  # no more than two or three letters before: not inside another word
        (
            EDGE
            + r"(sk_[0-9a-f]{48}|sk\.eyJ[0-9A-Za-z_-]{40,}\.[0-9A-Za-z_-]{20,}|csk-[0-9a-z]{48}|vc[pirak]_[0-9A-Za-z]{24,}"
            r"|nf[pcoub]_[0-9A-Za-z]{36}|rnd_[0-9A-Za-z]{28,}|napi_[0-9a-z]{40,}|cf(?:ut|at|k)_[0-9A-Za-z]{40,}"
            r"|v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}|EAA[0-9A-Za-z_-]{58,}|sq0[a-z]{3}-[0-9A-Za-z_-]{22,}|sq[pua]_[0-9a-f]{40}"
            r"|hca[a-z]{2}_[0-9a-z]{40,}|e2b_[0-9a-f]{40}|jina_[0-9A-Za-z_-]{50,}|fw_[0-9A-Za-z]{24}\b|tgp_v1_[0-9A-Za-z_-]{40,}"
            r"|esecret_[0-9A-Za-z]{20,}|secret_[0-9A-Za-z]{43}\b|pn[ub]_[0-9A-Za-z]{36}|re_[0-9A-Za-z]{8}_[0-9A-Za-z]{24}"
            r"|phx_[0-9A-Za-z]{40,}|rdme_[0-9a-z]{70}|tfp_[0-9A-Za-z_.=-]{50,}|fio-u-[0-9A-Za-z_-]{60,}|EZ[AT]K[0-9A-Za-z]{54}"
            r"|ico-[0-9A-Za-z]{32}\b|p8e-[0-9a-z]{32}\b|LTAI[0-9A-Za-z]{16,20}\b|AKID[0-9A-Za-z]{32}\b|AQVN[0-9A-Za-z_-]{35,}"
            r"|y0_[0-9A-Za-z_-]{50,}|oauth:[0-9a-z]{30}\b|sl\.(?:u\.)?[0-9A-Za-z_-]{100,}|pk_[0-9]{8}_[0-9A-Z]{32}"
            r"|1000\.[0-9a-f]{32}\.[0-9a-f]{32}|[0-9]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}|aio_[0-9A-Za-z]{28}\b"
            r"|4b1d[0-9A-Za-z]{38}\b|[ps]at\.[0-9A-Za-z_-]{22}\.[0-9a-f]{24}\.[0-9A-Za-z]{20}|API-[0-9A-Z]{26}\b"
            r"|sm_[aps]at_[0-9A-Za-z]{16}\b|t1\.[0-9A-Za-z_-]{20,}={0,2}\.[0-9A-Za-z_-]{86}|YC[0-9A-Za-z_-]{38}\b"
            r"|fc-[0-9a-f]{32}\b|a[ks]-[0-9A-Za-z]{22}\b|ls__[0-9a-f]{32}\b|pa-[0-9A-Za-z_-]{43}\b|rpa_[0-9A-Z]{30,}"
            r"|xau_[0-9A-Za-z]{40,}|tr_(?:dev|stg|prod)_[0-9A-Za-z]{20,}|dd[op]_[0-9A-Za-z]{36}\b|AKLT[0-9A-Za-z_-]{40,}"
            r"|[0-9a-f]{32}\.[0-9A-Za-z]{16}\b|A21AA[0-9A-Za-z_-]{60,}|ATTA[0-9a-f]{64}[0-9A-Za-z]*|sk[0-9A-Za-z]{80,}"
            r"|[0-9a-f]{24}:[0-9a-f]{64}\b|c[ks]_[0-9a-f]{40}\b|da2-[0-9a-z]{26}\b|token-[0-9a-z]{5}:[0-9a-z]{54}\b"
            r"|slk_[0-9a-f]{64}\b|secret-[0-9A-Za-z]{40,}|cflt[0-9A-Za-z+/]{60}|llx-[0-9A-Za-z]{40,}|m0-[0-9A-Za-z]{40}\b"
            r"|key_[0-9a-f]{64}\b|BSA[0-9A-Za-z_-]{27}\b|SCW[0-9A-Z]{17}\b|st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}"
            r"|[0-9a-f]{32}-us[0-9]{1,2}\b|[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk\b|(?:amzn\.mws\.|api-)"
            + _UUID
            + r"|0\."
            + _UUID
            + r"\.[0-9A-Za-z]{20,}:[0-9A-Za-z+/]{20,}={0,2}|pat-(?:na|eu)[0-9]-"
            + _UUID
            + r"|access-(?:production|sandbox|development)-"
            + _UUID
            + r"|sdk-"
            + _UUID
            + r"|A3-[0-9A-Z]{6}-(?:[0-9A-Z]{5,6}-){3,4}[0-9A-Z]{5}\b)"
        ),
    ),
    (
        "vaults",
        r"hv[sbr]\.[0-9A-Za-z_-]{24,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[0-9A-Za-z]{40,}|AGE-SECRET-KEY-1[0-9A-Z]{58}",
    ),
    (
        "dashboards",
        r"glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_-]{60,}",
    ),
    (
        "hexadecimal",
        EDGE + r"(SK[0-9a-f]{32}|dapi[0-9a-f]{32}|key-[0-9a-f]{32}|pat[0-9A-Za-z]{14}\.[0-9a-f]{64})(?:\b|_)",
    ),
    ("jwt", r"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}"),
    ("jwe", r"eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]{8,}"),
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    ("private-key-lines", r"Private-Lines:\s*[0-9]+\s+([0-9A-Za-z+/=\s]{40,})"),
    (
        "private-key-base64",  # its first line in base64, by the kinds of keys
        (
            r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR"
            r"|BEU0EgUFJJVkFUR|BQR1AgUFJJVkFUR)[0-9A-Za-z+/=_-]{16,}"
        ),
    ),
    (
        "private-key-body",  # without its first line, by what every key of its kind begins with
        (
            r"(?:MII[0-9A-Za-z+/]{3}IBADANBgkqhkiG9w0BAQEFAASC|MII[0-9A-Za-z+/]{3}IBAAKCA|MHcCAQEE|MIGHAgEAMBMGByqGSM49"
            r"|MC4CAQAwBQYDK2VwBCIE|b3BlbnNzaC1rZXktdjE)[0-9A-Za-z+/]+"
            r"(?:(?:\s|\\n)+[0-9A-Za-z+/]{48,})*(?:(?:\s|\\n)+[0-9A-Za-z+/]+={1,2})?={0,2}"
        ),
    ),
    (
        "token-base64",  # tokens of well-known prefixes in base64, as a manifest holds them
        (
            EDGE
            + r"((?:Z2hwX|Z2hvX|Z2hzX|Z2l0aHViX3BhdF|QUtJQ|QVNJQ|c2stYW50|c2stcHJvai|eG94[Yp]|Z2xwYXQt|bnBtX|c2tfbGl2ZV|aHZzL|QXV0aG9yaXphdGlvbjog|cGFzc3dvcmQ[69])"
            r"[0-9A-Za-z+/_-]{12,}={0,2})"
        ),
    ),
)
"""Name and RE2 rule of every form of token. Where a rule has a group, only the group is the secret."""

_NAMES = r"(?:password|passwd|passphrase|storepass|keypass|token|bearer|secret|(?:api|secret|auth|account)[_-]?key|auth[_-]?token)"
OPTION = r"(?i:--?(?:[a-z0-9_-]*[_-])?" + _NAMES + ")"
"""An option whose value is a secret."""
_KEYS = r"(?:encryption|signing|private|master|license|access|hmac|jwt|openai|anthropic|account|subscription|auth)"
NAMED: tuple[tuple[str, str], ...] = (
    ("url-password", r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^/\s:@\"']*:([^/\s\"']{3,})@"),
    ("url-password-encoded", r"(?i)%3a%2f%2f[0-9a-z_.~-]*%3a((?:[0-9a-z_.~!*-]|%[0-35-9a-f][0-9a-f]){3,})%40"),
    ("url-token", r"https?://([0-9A-Za-z_.~%-]{20,})@"),
    (
        "authorization",
        (
            r"(?i)authorization(?:"
            + _IS
            + r"(?:bearer|basic|token|digest|api-?key|geniekey|ssws|bot|jwt|oauth|dpop|sso-key|splunk|hawk)\s+(?:token=)?"
            r"([0-9a-z._~+/=:-]{8,})|(?:\\*[\"']?\s*:\s*(?:\$?(?:\\*[\"'])+)?|\\*[\"']\]?\s*=\s*\\*[\"'])([0-9a-z._~+/=-]{20,}))"
        ),
    ),
    ("signed", r"(?i)\b(?:signature|response)=\\*[\"']?([0-9a-f]{32,128})"),
    ("cookie", r"(?i)cookie\\*[\"']?\s*:\s*\\*[\"']?([^\s=;\"']{1,64}=[^\r\n\"'\\]{12,})"),
    (
        "assigned",
        r"(?i)(?:password|passwd|passphrase|_pass|(?:client|app|consumer|webhook|jwt|session|shared)[_-]?secret|"
        + EDGE
        + r"(?:secret(?:[_-]?key(?:_base)?)?|api[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?token))"
        + _IS
        + r"((?:[^\s\"'\\&;,<>(){}$.]|\.[^\s\"'\\&;,<>(){}$*])[^\s\"'\\&;,<>(){}$]{7,})",
    ),
    ("assigned-key", r"(?i)" + _KEYS + r"[_-]?key" + _IS + r"([0-9a-z+=_-][0-9a-z+/=_-]{19,})"),
    ("assigned-base64", r"(?i)[_-]key" + _IS + r"base64:([0-9a-z+/]{16,}={0,2})"),
    (
        "assigned-apart",  # a type, a bracket, a call or another member between the name and the value
        (
            r"(?i)(?:password|passwd|passphrase|secret|token|api_?key)(?:\s*:\s*[a-z][a-z_.\[\]|]{1,24}\s*=\s*(?:\\*[\"'])+"
            r"|(?:\\*[\"'])*:\s*[|>][+-]?[0-9]?\s*(?:\n|\\n)(?:\s|\\n)+|(?:\\*[\"'])*(?:[\s,]|\\n)+(?:\\*[\"'])*value(?:\\*[\"'])*\s*[:=]\s*(?:\\*[\"'])*)([^\s\"'\\&<>${}]{6,})"
        ),
    ),
    (
        "assigned-call",
        (
            r"(?i)(?:env|setdefault|define|putenv|get|set|setproperty)\s*\(\s*(?:\\*[\"'])+[a-z0-9_.-]*"
            r"(?:password|passwd|passphrase|secret|token|api_?key|secret_?key)(?:\\*[\"'])+\s*,\s*(?:\\*[\"'])+([^\s\"'\\${}]{8,})"
            r"|\bauth\s*=\s*\(\s*(?:\\*[\"'])+[^\s\"'\\]*(?:\\*[\"'])+\s*,\s*(?:\\*[\"'])+([^\s\"'\\${}]{6,})"
        ),
    ),
    ("jwk", r"\\*\"d\\*\"\s*:\s*\\*\"([0-9A-Za-z_-]{40,})"),
    (
        "assigned-word",
        r"(?:[A-Z0-9]_PWD|(?i:[;?&,]\s*(?:pwd|pass))|\bPASS|\bPSWD|\bPW|REDISCLI_AUTH)\s*=\s*(?:\$?(?:\\*[\"'])+)?([^\s\"'\\&;,<>(){}$/][^\s\"'\\&;,<>(){}$]{4,})",
    ),
    ("assigned-auth", r"(?i)(?:[\"']auth|_auth)" + _IS + r"([0-9a-z+/]{16,}={0,2})"),
    ("token", r"(?i)(?:(?:" + EDGE + r"|[-a-z])token|tf_token_[0-9a-z_-]{1,80})" + _IS + r"([0-9a-z_/+=~-]{16,})"),
    ("element", r"(?i)<(?:[a-z]+:)?(?:password|passphrase|secret|token|api-?key)>([^<\s]{6,})</"),
    (
        "sql",
        r"(?i)(?:\bpassword|\bidentified(?:\s+with\s+\S{1,40})?\s+by)\s+(?:\\*[\"'])*'(?:\\*[\"'])*([^\"'\\\s]{6,})(?:\\*[\"'])*'",
    ),
    ("mnemonic", r"(?i)mnemonic" + _IS + r"((?:[a-z]{3,8}\s+){11,23}[a-z]{3,8})"),
    (
        "option",
        OPTION + rf"\s+{_OPEN}" + r"([^\s\"'\\&;|<>(){}$-][^\s\"'\\&;|<>(){}$]{7,})",
    ),
    ("netrc", EDGE + r"(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+([^\s\"'\\]{4,})"),
)
"""The same for values that only the name before them shows."""

COMMANDS: tuple[tuple[str, str], ...] = (
    (
        "curl-user",
        r"\bcurl"
        + _WORDS
        + r"[\s\"'](?:-[a-zA-Z]*[uU]|--(?:proxy-)?user[=\s]?)"
        + f"(?:{_NEXT})?"
        + r"\\*[\"']?[^\s:\"'\\-][^\s:\"'\\]*:([^\s\"'\\]{3,})",
    ),
    (
        "curl-cookie",
        r"\bcurl" + _WORDS + r"[\s\"'](?:-b|--cookie)" + f"(?:=|{_NEXT})?" + r"\\*[\"']?([^\s=\"'\\]+=[^\s\"'\\]{12,})",
    ),
    (
        "mysql",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mycli)"
        + _WORDS
        + rf"[\s\"']-p{_OPEN}("
        + _WORD
        + "{4,})",
    ),
    ("aws-secret", r"(?i)secret_?(?:access_?)?key(?:" + _NEXT + "|" + _IS + r")([0-9a-z/+=]{40})"),
    ("sshpass", r"\bsshpass" + _NEXT + "-p" + f"(?:{_NEXT})?(" + _WORD + "{4,})"),
    ("redis", r"\bredis-cli" + _WORDS + r"[\s\"']-a" + _NEXT + "(" + _WORD + "{4,})"),
    (
        "login",
        r"\b(?:docker|podman|nerdctl|helm|skopeo|buildah|oras|az|oc)"
        + _WORDS
        + r"\blogin(?:[\s\"',][^|;&\n]*?)?[\s\"']-p"
        + f"(?:{_NEXT})?("
        + _WORD
        + "{4,})",
    ),
    (
        "capital",
        r"\b(?:(?:zip|unzip|sqlcmd|bcp|ipmitool|mosquitto_[a-z]+)"
        + _WORDS
        + r"[\s\"']-P|ssh-keygen"
        + _WORDS
        + r"[\s\"']-[NP]|snmp[a-z]+"
        + _WORDS
        + r"[\s\"']-A)"
        + f"(?:{_NEXT})?({_FIRST}{_WORD}{{3,}})",
    ),
    (
        "small",
        r"\b(?:(?:7z[ar]?|unrar|rar|cqlsh|mongo[a-z]*|twine|ncftp[a-z]*|useradd|usermod)"
        + _WORDS
        + r"[\s\"']-p|xfreerdp"
        + _WORDS
        + r"[\s\"']/p:|curl"
        + _WORDS
        + r"[\s\"']--(?:proxy-)?pass|openssl"
        + _NEXT
        + r"enc"
        + _WORDS
        + r"[\s\"']-k|doctl"
        + _WORDS
        + r"[\s\"']-t|nmcli"
        + _WORDS
        + r"[\s\"']password)"
        + f"(?:{_NEXT})?({_FIRST}{_WORD}{{3,}})",
    ),
    (
        "pair",  # USER:PASSWORD, or joined as the program wants it
        r"\b(?:(?:https?|xhs?)(?:[\s\"'][^|;&\n]*?)?[\s\"'](?:-a|--auth)|(?:etcdctl|lftp|smbclient)"
        + _WORDS
        + r"[\s\"'](?:-[uU]|--user|open\s+-u))"
        + f"(?:=|{_NEXT})"
        + r"[^\s:%,\"'\\-][^\s:%,\"'\\]*[:%,]([^\s\"'\\]{4,})",
    ),
    ("oracle", r"\bsqlplus" + _WORDS + r"[\s\"'][^\s/@\"'\\]+/(" + _WORD + "{4,})"),
    (
        "third",  # the word behind the name of a user
        r"\b(?:rabbitmqctl"
        + _WORDS
        + r"\b(?:add_user|change_password)|config"
        + _NEXT
        + r"(?:[^\s\"',]*[\"',\s]+)?http-basic\.[^\s\"']+|wpa_passphrase)"
        + _NEXT
        + _WORD
        + "+"
        + _NEXT
        + "("
        + _WORD
        + "{4,})",
    ),
    (
        "given",
        r"\b(?:(?:cargo|vault)"
        + _NEXT
        + r"login|bw"
        + _NEXT
        + r"unlock|nuget"
        + _NEXT
        + r"setapikey|add-authtoken|(?:gem|mix)"
        + _WORDS
        + r"--key|config"
        + _NEXT
        + r"(?:set"
        + _NEXT
        + r")?(?:[^\s\"']*_authToken|npmAuthToken|pypi-token\.[^\s\"']+)|ConvertTo-SecureString(?:\s+-String)?|mkpasswd"
        + _WORDS
        + r")"
        + f"{_NEXT}({_FIRST}{_WORD}{{7,}})",
    ),
    (
        "set",
        r"\b(?:(?:fly|flyctl|supabase)"
        + _NEXT
        + r"secrets"
        + _NEXT
        + r"set|heroku"
        + _NEXT
        + r"config:set)"
        + _WORDS
        + r"[\s\"'][A-Za-z0-9_]+=(?:\\*[\"'])?("
        + _WORD
        + "{4,})",
    ),
    (
        "ldap",
        r"\bldap(?:search|modify|add|delete|whoami|passwd)" + _WORDS + r"[\s\"']-w" + _NEXT + "(" + _WORD + "{4,})",
    ),
    (
        "htpasswd",
        r"\bhtpasswd"
        + _WORDS
        + r"[\s\"']-[a-zA-Z]*b[a-zA-Z]*"
        + _NEXT
        + _WORD
        + "+"
        + _NEXT
        + _WORD
        + "+"
        + _NEXT
        + "("
        + _WORD
        + "{4,})",
    ),
    ("openssl", r"(?:^|[\s\"'=])pass:(" + _WORD + "{4,})"),
    (
        "gh-secret",
        r"\bsecret(?:s)?" + _NEXT + r"set" + _WORDS + r"[\s\"'](?:-b|--body)" + f"(?:=|{_NEXT})?(" + _WORD + "{6,})",
    ),
    ("literal", r"--from-literal" + f"(?:=|{_NEXT})" + r"[^\s=\"'\\]+=([^\s\"'\\]{4,})"),
    (
        "named-words",
        r"(?i:(?:\b(?:setenv|set"
        + _NEXT
        + r"-[a-z]+)|--arg)"
        + _NEXT
        + r"|(?:[\s(]|\\n):)(?i:[a-z0-9_]*(?:password|passwd|passphrase|secret|token|api_?key))"
        + _NEXT
        + f"({_FIRST}{_WORD}{{7,}})",
    ),
    (
        "stdin",
        (
            r"\b(?:echo|printf)(?:\s+-[a-z]+)?\s+(?:(?:\\*[\"'])*%s(?:\\*[\"'])*\s+)?(?:\\*[\"'])*([^\s\"'\\|$]{6,})(?:\\*[\"'])*\s*\|"
            r"(?:[^|;&\n]*?--(?:password|token|with-token|secret)(?:-stdin)?\b|\s*(?:sudo\s+|npx\s+)*"
            r"(?:sudo\s+-[a-zA-Z]*S|-[a-zA-Z]*S\b|su\b|kinit\b|passwd\b|chpasswd\b|vncpasswd\b|cryptsetup\b|wrangler\s+secret\b))"
        ),
    ),
    (
        "basic-pair",
        r"\b(?:echo|printf)(?:\s+-[a-z]+)?\s+(?:(?:\\*[\"'])*%s(?:\\*[\"'])*\s+)?(?:\\*[\"'])*[^\s:\"'\\|$]{1,64}:([^\s\"'\\|$]{6,})(?:\\*[\"'])*\s*\|\s*base64\b",
    ),
    (
        "here-string",
        r"\b(?:sudo\s+-[a-zA-Z]*S|su|kinit|passwd|chpasswd|vncpasswd|cryptsetup|pass\s+insert)\b[^|;&<\n]*<<<\s*(?:\\*[\"'])*([^\s\"'\\|$]{6,})",
    ),
)
"""The same for the words of well-known commands. They are also looked for in an argument vector, as if it were a line."""
TWO_WORDS = r"\"" + OPTION + r"\",\""
"""An option whose value is the next word of an argument vector, as records spell it."""
BYTES = r"\{\"hex\":\""
"""What is no Unicode, as records spell it: it is looked at as text."""
FORMS = (*TOKENS, *NAMED, *COMMANDS)
CORES = {
    "azure-key": r"(?:AZDO|\+ASt|ACDb|AzSe|AzFu|AIoT|APIM|\+ACR|JQQJ)[0-9A-Za-z+/]{4}",
    "azure-secret": r"[78]Q~[0-9A-Za-z_~.-]{31}",
    "chat": r":AA[0-9A-Za-z_-]{33}|\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27}",
    "dashboards": r"glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|\.atlasv1\.",
    "url-password": r"://[^/\s:@\"']*:[^/\s\"']{3,}@",
}
"""What is in whatever a rule finds, for the rules that begin with any letters: looking for those letters everywhere is slow."""

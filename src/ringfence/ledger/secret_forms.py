"""What secrets look like beside tokens: values by the name before them, and words of commands that take one. Pure."""

from ringfence.ledger.token_forms import EDGE, TOKENS

_QUOTES = r"(?:\\*[\"'])+"
"""One quote or more, as a line looks that was quoted for another."""
_OPEN = rf"(?:\$?{_QUOTES})?"
_IS = rf"(?:{_QUOTES}\]?)?(?:[\]}}]=|\s*(?:=>|:=|[=:])|%3[AaDd](?:%20|\+)?)\s*{_OPEN}"
"""What stands between a name and its value in configuration, headers, code, JSON and URLs, however often it was quoted."""
_NEXT = rf"(?:\s+|{_QUOTES},\s*{_QUOTES}){_OPEN}"
"""Between two words of a line, or of an argument vector as JSON and code spell it."""
_WORDS = r"\b[^|;&\n]*?"
"""Other words of the same command."""
_WORD = r"[^\s\"'\\|;&<>(){}$]"
_FIRST = r"[^\s\"'\\|;&<>(){}$-]"
"""One character of a word, and the first one of a word that is no option."""

_NAMES = r"(?:password|passwd|passphrase|storepass|keypass|token|bearer|secret|(?:api|secret|auth|account)[_-]?key|auth[_-]?token)"
OPTION = r"(?i:--?(?:[a-z0-9_-]*[_-])?" + _NAMES + ")"
"""An option whose value is a secret."""
_KEYS = (
    r"(?:encryption|signing|private|preshared|master|license|access|hmac|jwt|account|subscription|auth|service|admin|server|openai"
    r"|anthropic|stripe|sendgrid|mailgun|twilio|groq|mistral|fal|replicate|datadog|app)"
)
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
    (
        "element",
        r"(?i)<(?:[a-z]+:)?(?:password|passphrase|secret|token|api-?key)>([^<\s]{6,}|[^<\s;|&]+ [^<\n;|&]{4,})</",
    ),
    (
        "element-apart",
        r"(?i)<key>[^<]*(?:password|passphrase|secret|token|api-?key)</key>\s*<string>([^<\s]{6,}|[^<\s;|&]+ [^<\n;|&]{4,})</",
    ),
    (
        "quoted",  # several words, of which the first is too short to be a secret alone
        r"(?:\s--?(?:[a-z-]*-)?(?:password|passwd|passphrase)[\s=]+|[A-Z_]*(?:PASSWORD|PASSWD|PASSPHRASE)=)(?:\\*[\"'])([^\s\"'\\$`;|&<>]+ [^\"'\\$`;|&<>\n]{4,})",
    ),
    ("assigned-pat", r"[A-Z0-9]_(?:PAT|CREDENTIALS?)=(?:\\*[\"'])?([^\s\"'\\&;,<>(){}$/.][^\s\"'\\&;,<>(){}$]{11,})"),
    (
        "pgpass",
        r"(?m)^(?:\\*[\"'])*[^\s:\"'#]+:(?:[0-9]+|\*):[^\s:\"']+:[^\s:\"']+:([^\s:\"'\\]{6,})(?:\\*[\"'])*\s*(?:$|>|\\n)",
    ),
    (
        "sql",
        r"(?i)(?:\bpassword|\bidentified(?:\s+with\s+\S{1,40})?\s+by)\s+(?:\\*[\"'])*'(?:\\*[\"'])*(?:([^\"'\\\s]{6,})(?:\\*[\"'])*'|([^\"'\\\s;|&<>]+ [^\"'\\;|&<>\n]{4,}))",
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
        + r"[\s\"']-[AX])"
        + f"(?:{_NEXT}|{_OPEN})({_FIRST}{_WORD}{{3,}})",
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
        + f"(?:{_NEXT}|{_OPEN})({_FIRST}{_WORD}{{3,}})",
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
        r"\b(?:(?:fly|flyctl|supabase|doppler)"
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
        "stored",  # what is put into a store of secrets
        r"\b(?:ssm"
        + _NEXT
        + r"put-parameter"
        + _WORDS
        + r"SecureString"
        + _WORDS
        + r"[\s\"']--value|keyvault"
        + _NEXT
        + r"secret"
        + _NEXT
        + r"set"
        + _WORDS
        + r"[\s\"']--value|secretsmanager"
        + _WORDS
        + r"[\s\"']--secret-string|security"
        + _NEXT
        + r"add-[a-z]+-password"
        + _WORDS
        + r"[\s\"']-w|security"
        + _NEXT
        + r"unlock-keychain"
        + _WORDS
        + r"[\s\"']-p|redis-cli"
        + _WORDS
        + r"(?i:\bauth|requirepass)|env:set"
        + _NEXT
        + _WORD
        + r"+|vault"
        + _NEXT
        + r"(?:kv"
        + _NEXT
        + r")?(?:put|write|patch)"
        + _WORDS
        + r"[\s\"'][A-Za-z0-9_-]+=|aws_session_token)"
        + f"(?:=|{_NEXT})?{_OPEN}({_FIRST}{_WORD}{{5,}})",
    ),
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
            r"\b(?:echo|printf)(?:\s+-[a-z]+)?\s+(?:(?:\\*[\"'])*%s(?:\\*[\"'])*\s+)?(?:\\*[\"'])*([^\s\"'\\|;&$]{6,}|[^\s\"'\\|;&$]+ [^\"'\\|;&$\n]{4,})(?:\\*[\"'])*\s*\|"
            r"(?:[^|;&\n]*?--(?:password|token|with-token|secret)(?:-stdin)?\b|\s*(?:sudo\s+|npx\s+)*"
            r"(?:sudo\s+-[a-zA-Z]*S|-[a-zA-Z]*S\b|su\b|kinit\b|passwd\b|chpasswd\b|vncpasswd\b|cryptsetup\b|wrangler\s+secret\b"
            r"|gh\s+secret\s+set\b|vercel\s+env\s+add\b|gcloud\s+secrets\b|secret-tool\s+store\b|pass\s+insert\b|kubeseal\b))"
        ),
    ),
    (
        "basic-pair",
        r"\b(?:echo|printf)(?:\s+-[a-z]+)?\s+(?:(?:\\*[\"'])*%s(?:\\*[\"'])*\s+)?(?:\\*[\"'])*[^\s:\"'\\|$]{1,64}:([^\s\"'\\|$]{6,})(?:\\*[\"'])*\s*\|\s*base64\b",
    ),
    (
        "here-string",
        r"\b(?:sudo\s+-[a-zA-Z]*S|su|kinit|passwd|chpasswd|vncpasswd|cryptsetup|pass\s+insert)\b[^|;&<\n]*<<<\s*(?:\\*[\"'])*([^\s\"'\\|;&$]{6,})",
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

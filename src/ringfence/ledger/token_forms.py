"""What tokens look like, by the forms that their issuers give them. Pure."""

EDGE = r"(?:\b|_|\\(?:[nrtbf]|u[0-9a-f]{4}))"
"""Where a name or token begins: also behind a line end or tab that is spelled out, as in JSON inside a text."""
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

TOKENS: tuple[tuple[str, str], ...] = (
    ("aws-key-id", EDGE + r"((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})"),
    ("aws-bedrock", EDGE + r"(ABSK[0-9A-Za-z+/]{40,}={0,2})|bedrock-api-key-[0-9A-Za-z+/=%_-]{40,}"),
    ("github", r"gh[pousr]_[0-9A-Za-z][0-9A-Za-z_.-]{35,}|github_pat_[0-9A-Za-z_]{22,255}"),
    ("gitlab", r"gl(?:pat|dt|rt|rtr|ft|soat|oas|cbt|ptt|agent|ffct|imt|wt)-[0-9A-Za-z_-]{20,}(?:\.[0-9A-Za-z_-]{2,})*"),
    ("slack", r"xox[a-z]-[0-9A-Za-z%-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,}"),
    ("google", r"AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}"),
    ("google-refresh", EDGE + r"(1//0[0-9A-Za-z_-]{40,}|AQ\.Ab[0-9A-Za-z_-]{40,})"),
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
            r"|hook\.[0-9a-z]+\.make\.com/[0-9a-z]{20,}|maker\.ifttt\.com/trigger/[^\s/]+/(?:json/)?with/key/[0-9A-Za-z_-]{15,}"
            r"|bot/v2/hook/[0-9a-f-]{36}|webhook/send\?key=[0-9a-f-]{36}"
            r"|mcp\.zapier\.com/api/mcp/[a-z]/[0-9A-Za-z_=-]{30,}"
        ),
    ),
    ("chat", r"[0-9]{8,10}:AA[0-9A-Za-z_-]{33}|[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}"),
    (
        "named",
        (
            r"shp[a-z]{2,4}_[0-9a-fA-F]{32}|lin_(?:api|oauth|wh)_[0-9A-Za-z]{32,}|NRAK-[0-9A-Z]{27}|fig[a-z]{1,4}_[0-9A-Za-z_-]{30,}"
            r"|AT(?:ATT3|CTT3|STT3|BB)[0-9A-Za-z_=-]{28,}|pscale_(?:tkn|pw|oauth)_[0-9A-Za-z_-]{30,}"
            r"|fm[12]_[0-9A-Za-z+/=_-]{40,}|gsk_[0-9A-Za-z]{40,}|xai-[0-9A-Za-z]{60,}|sbp_[0-9a-f]{40}"
            r"|sntr[yu]s_[0-9A-Za-z_=+/-]{40,}|sntryu_[0-9a-f]{64}|tskey-[a-z]+-[0-9A-Za-z-]{20,}"
            r"|nvapi-[0-9A-Za-z_-]{40,}|r8_[0-9A-Za-z]{30,}|pplx-[0-9A-Za-z]{40,}|ntn_[0-9A-Za-z]{40,}|pul-[0-9a-f]{40}"
            r"|CCIPAT_[0-9A-Za-z_]{40,}|sgp_[0-9A-Za-z_]{40,}|sgamp_user_[0-9A-Za-z_]{60,}|bk[a-z]{2}_[0-9a-f]{40}|sb_secret_[0-9A-Za-z_-]{20,}"
            r"|ops_eyJ[0-9A-Za-z_-]{100,}|HRKU-[0-9A-Za-z_-]{30,}|vercel_blob_rw_[0-9A-Za-z_]{30,}"
            r"|glc_[0-9A-Za-z+/]{32,}={0,2}|dt0[a-z][0-9]{2}\.[0-9A-Z]{8,24}\.[0-9A-Z]{64}"
            r"|snyk_[a-z]{3}\.[0-9A-Za-z]{8}\.[0-9A-Za-z_.-]{40,}|pcsk_[0-9A-Za-z_]{50,}|wandb_v1_[0-9A-Za-z_-]{40,}"
            r"|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|tvly-(?:dev-|prod-)?[0-9A-Za-z]{30,}|crsr_[0-9a-f]{64}"
            r"|x(?:key|smtp)sib-[0-9a-f]{64}-[0-9A-Za-z]{16}|CFPAT-[0-9A-Za-z_-]{43}|rzp_(?:live|test)_[0-9A-Za-z]{14}"
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
            r"|ctx7sk-[0-9a-f-]{36}|depot_[a-z]+_[0-9a-f]{64}|ucat_[0-9A-Z]{26}|nbp_[0-9A-Za-z]{36}|dd(?:app|pat)_[0-9A-Za-z_]{30,}"
            r"|cx[tu]p_[0-9A-Za-z]{30}|rootly_[0-9a-f]{64}|inc_[0-9a-f]{64}|fhb-[0-9a-f-]{32,}|cnvca[0-9A-Za-z_-]{40,}"
            r"|dG9rO[0-9A-Za-z+/_-]{50,}={0,2}|AQE[0-9A-Za-z+/=]{40,}-[0-9A-Za-z+/=]{30,}|npg_[0-9A-Za-z]{12,}\b"
            r"|mdb_sa_sk_[0-9A-Za-z_-]{30,}|CCDB1_[0-9A-Za-z]{22}_[0-9A-Za-z]{40}|standard_[0-9a-f]{200,}"
            r"|(?:prod|dev|preview):[0-9a-z:-]+\|[0-9A-Za-z+/=]{40,}|dbt[cu]_[0-9A-Za-z_=-]{40,}|IG[QA][0-9A-Za-z_-]{100,}"
            r"|WPL_AP[0-9]\.[0-9A-Za-z.=]{20,}|[0-9]{15,16}\|[0-9A-Za-z_-]{27}\b|M\.[CR][0-9]{2,3}_[0-9A-Z]+\.[0-9A-Za-z.!*_$-]{80,}"
            r"|RW(?:RTY0Iy|QAAEIy|RCSw)[0-9A-Za-z+/]{100,}={0,2}|SWMKEY-1-[0-9A-Za-z+/]{40,}|apify_api_[0-9A-Za-z]{30,}"
            r"|scp-(?:live|test)-[0-9a-f]{32}|ramp_(?:tok|sec)_[0-9A-Za-z]{32,}|secret_[0-9a-z_-]+_[0-9a-f]{32}\.[0-9A-Za-z]{32}"
            r"|api_(?:live|sandbox)(?:_[a-z]{2})?\.[0-9A-Za-z_-]{11}\.[0-9A-Za-z_-]{32}|aph0_[0-9A-Za-z_-]{40,}"
            r"|v1:[0-9A-Za-z]{24}:[0-9A-Za-z]{24}\b|sec-c-[0-9A-Za-z]{40,}|private_[0-9A-Za-z+/]{27}=|os_v2_(?:app|org)_[0-9a-z]{90,}"
            r"|KEY0[0-9A-Z]{20,}_[0-9A-Za-z]{20,}|nyk_v0_[0-9A-Za-z]{60,}|cal_(?:live_)?[0-9a-f]{32}"
            r"|configcat-(?:sdk-1|proxy)/[0-9A-Za-z_-]{22}/[0-9A-Za-z_-]{22}|secret_(?:user|admin|readonly)_[0-9A-Za-z+/=]{30,}"
            r"|dvc_server_[0-9A-Za-z_-]{30,}|tr_pat_[0-9a-z]{40}|testsk_[0-9A-Za-z_-]{30,}|zpka_[0-9a-f]{32}_[0-9a-f]{8}"
            r"|unkey_[0-9A-Za-z]{20,}|[ks]pat_[0-9A-Za-z]{48,}|(?:service:[0-9A-Za-z_-]+|user:(?:gh|fh)\.[^\s:\"']+):[0-9A-Za-z_-]{22}"
            r"|AIK_SECRET_[0-9A-Za-z]{40,}|hawk\.[0-9A-Za-z_-]{20}\.[0-9A-Za-z_-]{20}|censys_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}"
            r"|vera01e[is]-[0-9a-f]{32,}|gb_api_[0-9A-Za-z]{40}|PMAT-[0-9A-Z]{26}|jsr[a-z]_[0-9A-Za-z_-]{40,}"
            r"|v[1-4]\.(?:local|public)\.[0-9A-Za-z_-]{60,}|k[1-4]\.(?:local|secret)\.[0-9A-Za-z_-]{40,}|ptr_[0-9A-Za-z+/]{43}="
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
            r"|hc[abx][a-z]{2}_[0-9a-z]{40,}|e2b_[0-9a-f]{40}|jina_[0-9A-Za-z_-]{50,}|fw_[0-9A-Za-z]{24}\b|tgp_v1_[0-9A-Za-z_-]{40,}"
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
            r"|2[0-9A-Za-z]{26}_[0-9A-Za-z]{20,22}\b|xa[ap]t-[0-9a-f-]{36}|[um][0-9]{6,10}-[0-9a-f]{24,32}\b|live_[0-9A-Za-z]{30,}"
            r"|00D[0-9A-Za-z]{9,15}![0-9A-Za-z_.]{80,}|sk_[0-9A-Za-z]{26,}|pk_[0-9a-f]{34}\b|pk_(?:prod|test)_[0-9A-Z]{28}\b"
            r"|dose[0-9a-f]{32}\b|11[0-9a-f]{32}\b|cu_[0-9a-f]{32}\b|ion_[0-9A-Za-z]{42}\b|[01]\.A[0-9A-Za-z_-]{150,}"
            r"|A{19,22}[0-9A-Za-z]{6,40}%[0-9A-Za-z%]{30,}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b|[0-9a-f]{10}msh[0-9a-f]{15}p1[0-9a-f]{5,6}jsn[0-9a-f]{12}"
            r"|key_[0-9a-f]{64}\b|BSA[0-9A-Za-z_-]{27}\b|SCW[0-9A-Z]{17}\b|st\.[0-9a-f-]{24,36}\.[0-9a-f]{32}\.[0-9a-f]{32}"
            r"|[0-9a-f]{32}-us[0-9]{1,2}\b|[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk\b|(?:amzn\.mws\.|api-)"
            + _UUID
            + r"|0\."
            + _UUID
            + r"\.[0-9A-Za-z]{20,}:[0-9A-Za-z+/]{20,}={0,2}|pat-(?:na|eu)[0-9]-"
            + _UUID
            + r"|access-(?:production|sandbox|development)-"
            + _UUID
            + r"|[0-9a-f]{32}-"
            + _UUID
            + r"|(?:sdk|rel)-"
            + _UUID
            + r"|A3-[0-9A-Z]{6}-(?:[0-9A-Z]{5,6}-){3,4}[0-9A-Z]{5}\b)"
        ),
    ),
    (
        "vaults",
        r"hv[sbr]\.[0-9A-Za-z_-]{24,}|dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[0-9a-z_-]{2,35}\.)?[0-9A-Za-z]{40,}|AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58,}",
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

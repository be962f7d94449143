"""The readers of the blast radius one by one: IAM sets, SQL, Alembic, documents, bytes."""

import json

import pytest

from ringfence.promotion.blast.alembic import looks_like_alembic, unknown_in_alembic
from ringfence.promotion.blast.documents import Unreadable, read_yaml
from ringfence.promotion.blast.iam import catalogue, compare_iam, contains
from ringfence.promotion.blast.manifests import compare_manifests
from ringfence.promotion.blast.paths import added_bytes
from ringfence.promotion.blast.sql import compare_sql
from ringfence.promotion.blast.stacks import recognise
from ringfence.promotion.change import Side, Touched
from ringfence.promotion.globs import matches, matches_any_case


def allow(action, resource="*", **more):
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def document(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.mark.parametrize(
    ("wide", "narrow", "holds"),
    [
        ("*", "s3:getobject", True),
        ("s3:*", "s3:get*", True),
        ("s3:get*", "s3:getobject*", True),
        ("s3:get*", "s3:*", False),
        ("s3:get?bject", "s3:getobject", True),
        ("s3:getobject", "s3:get?bject", False),
        ("s3:*object", "s3:get*object", True),
        ("s3:g*t", "s3:get", True),
        ("s3:get", "s3:get*", False),
        ("**", "*", True),
        ("?", "*", False),
        ("", "", True),
        ("", "*", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
    ],
)
def test_one_pattern_contains_another(wide, narrow, holds):
    assert contains(wide, narrow) is holds


def test_containment_of_patterns_agrees_with_matching_of_texts():
    import fnmatch
    import itertools

    letters = ["a", "b", "*", "?"]
    patterns = ["".join(p) for n in range(4) for p in itertools.product(letters, repeat=n)]
    texts = ["".join(t) for n in range(5) for t in itertools.product("ab", repeat=n)]
    for wide in patterns[::3]:
        for narrow in patterns[::2]:
            if contains(wide, narrow):
                assert all(fnmatch.fnmatchcase(t, wide) for t in texts if fnmatch.fnmatchcase(t, narrow)), (
                    wide,
                    narrow,
                )


def test_a_wildcard_counts_as_the_names_that_it_means():
    delta = compare_iam(document(allow(["dynamodb:GetItem", "dynamodb:Query"])), document(allow("dynamodb:*Item")))
    assert {"dynamodb:putitem", "dynamodb:deleteitem"} <= delta.actions
    assert "dynamodb:getitem" not in delta.actions
    assert len(catalogue()) > 15_000
    future = compare_iam(document(allow("sqs:SendMessage")), document(allow("sqs:SendMessageOfTomorrow*")))
    assert len(future.actions) == 1


@pytest.mark.parametrize(
    "new",
    [
        document(allow("s3:GetObject", "arn:a")),
        document(allow(["s3:getobject"], ["arn:a"], Sid="x")),
        document(allow("s3:GetObject", "arn:a", Condition={"Bool": {"x": "true"}})),
        document(),
        {"Version": "2012-10-17", "Id": "new", "Statement": allow("s3:GetObject", "arn:a")},
        None,
    ],
)
def test_what_grants_no_more_adds_nothing(new):
    delta = compare_iam(document(allow("s3:GetObject", "arn:a")), new)
    assert (delta.actions, delta.notes) == (frozenset(), ())


@pytest.mark.parametrize(
    "new",
    [
        document(allow("s3:PutObject", "arn:a")),
        document(allow("s3:GetObject", "arn:*")),
        document(allow("s3:GetObject", "arn:a", Principal="*")),
        document({"Effect": "Allow", "NotAction": "s3:GetObject", "Resource": "arn:a"}),
        document({"Effect": "Allow", "Action": "s3:GetObject", "NotResource": "arn:b"}),
        document(allow("s3:GetObject", "arn:a", Surprise=1)),
        {**document(allow("s3:GetObject", "arn:a")), "PermissionsBoundary": "x"},
        {"Version": "2008-10-17", "Statement": [allow("s3:GetObject", "arn:a")]},
    ],
)
def test_what_grants_more_or_cannot_be_told_is_found(new):
    delta = compare_iam(document(allow("s3:GetObject", "arn:a")), new)
    assert delta.actions or delta.notes


def test_a_dropped_condition_widens_and_a_kept_odd_statement_does_not():
    narrow = allow("s3:GetObject", Condition={"Bool": {"x": "true"}})
    assert compare_iam(document(narrow), document(allow("s3:GetObject"))).actions
    odd = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
    assert compare_iam(document(odd), document({**odd, "Sid": "y"})) == compare_iam(None, None)
    odd_deny = {"Effect": "Deny", "NotAction": "iam:*", "Resource": "*"}
    assert not compare_iam(document(odd_deny), document(odd_deny)).notes
    assert compare_iam(document(odd_deny), document()).notes


@pytest.mark.parametrize(
    "broken",
    [
        [],
        "x",
        document("x"),
        document({"Effect": "Maybe"}),
        document(allow([1])),
        document(allow("a", Condition=[])),
        document(allow("a", Condition={"x": 1})),
        document(allow("a", Principal=5)),
    ],
)
def test_what_is_no_policy_cannot_be_told(broken):
    with pytest.raises(Unreadable):
        compare_iam(None, broken)


SAFE_SQL = [
    'CREATE TABLE a (id int, drop_at date, "delete" text);',
    "ALTER TABLE a ADD COLUMN b int, ADD COLUMN c text;",
    "ALTER TABLE a ALTER COLUMN b SET NOT NULL;",
    "INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING;",
    "ALTER TABLE a VALIDATE CONSTRAINT c;",
    "ALTER TYPE mood ADD VALUE 'ok';",
    "SET lock_timeout = '5s';",
    "CREATE TABLE e (m text CHECK (m ~ '^[^@]+@[a-z.]+\\.[a-z]+$'));",
    "UPDATE a SET b = 1 WHERE b IS NULL OR c = 2;",
    "CREATE VIEW v AS SELECT 1;",
]
UNSAFE_SQL = [
    "DROP TABLE a;", "TRUNCATE a;", "DELETE FROM a WHERE id = 1;", "ALTER TABLE a RENAME COLUMN b TO c;", "ALTER TABLE a DROP COLUMN b;",
    "ALTER TABLE a ALTER COLUMN b TYPE text;", "ALTER TABLE a ALTER COLUMN b DROP NOT NULL;", "INSERT INTO a VALUES (1) ON CONFLICT (id) DO UPDATE SET b = 1;",
    "CREATE OR REPLACE VIEW v AS SELECT 1;", "CREATE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql;", "UPDATE a SET b = 1;", "UPDATE a SET b = 1 WHERE true;",
    "UPDATE a SET b = 1 WHERE NOT c = 3;", "UPDATE a SET b = NULL WHERE id = 1;", "SET session_replication_role = replica;", "SELECT f();", "ALTER SEQUENCE s RESTART;",
    "/* a /* b */ DROP TABLE a; -- */", "SELECT $x$ DROP $x$;", "COMMENT ON TABLE a IS 'x\\'; DROP TABLE a; --';", "VACUUM a;", "MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE;",
]  # fmt: skip


@pytest.mark.parametrize("line", SAFE_SQL)
def test_what_only_adds_passes(line):
    delta = compare_sql(None, line.encode(), "postgres")
    assert (delta.drops, delta.access, delta.cannot_tell) == ((), (), ())


@pytest.mark.parametrize("line", UNSAFE_SQL)
def test_what_drops_or_cannot_be_told_does_not_pass(line):
    try:
        delta = compare_sql(None, line.encode(), "postgres")
    except Unreadable:
        return
    assert delta.drops or delta.cannot_tell or delta.access


@pytest.mark.parametrize(
    ("raw", "dialect"),
    [(b"\xff", "postgres"), (b"B''d", "postgres"), (b"SELECT 1", "klingon"), (b"-" * 300_000, "postgres")],
)
def test_sql_that_cannot_be_read(raw, dialect):
    with pytest.raises(Unreadable):
        compare_sql(None, raw, dialect)


HEAD = "from alembic import op\nimport sqlalchemy as sa\nrevision = 'b'\ndown_revision = 'a'\n"


@pytest.mark.parametrize(
    ("body", "clean"),
    [
        ("def upgrade():\n    op.add_column('t', sa.Column('c', sa.Text()))\n", True),
        ("def upgrade() -> None:\n    pass\n\ndef downgrade():\n    op.drop_table('t')\n", True),
        ("def upgrade():\n    op.drop_column('t', 'c')\n", False),
        ("def upgrade():\n    op.execute('DROP TABLE t')\n", False),
        ("def upgrade():\n    getattr(op, 'drop_table')('t')\n", False),
        ("def upgrade():\n    f = op.drop_table\n    f('t')\n", False),
        ("def upgrade():\n    for t in 'ab':\n        op.create_index(t, t, [t])\n", False),
        ("def upgrade():\n    op.add_column('t', sa.Column('c', server_default=sa.text('drop()')))\n", False),
        ("def upgrade(x=op.drop_table('t')):\n    pass\n", False),
        ("op.drop_table('t')\ndef upgrade():\n    pass\n", False),
        ("import os\ndef upgrade():\n    pass\n", False),
        ("@op.drop\ndef upgrade():\n    pass\n", False),
        ("x = 1\n", False),
        ("def upgrade(:\n", False),
    ],
)
def test_alembic_revisions_pass_by_an_allowlist_of_calls(body, clean):
    source = (HEAD + body).encode()
    assert looks_like_alembic("db/x.py", source)
    assert (unknown_in_alembic(source) == []) is clean


@pytest.mark.parametrize(
    "raw",
    [
        b"a: 1\na: 2\n",
        b"a: !!python/object:os.system x\n",
        b"? [a]\n: b\n",
        b"\xff",
        b"a: &x [*x]\n",
        b"a: *x\n",
        b"x" * 2_000_000,
    ],
)
def test_yaml_that_two_parsers_could_read_differently_is_unreadable(raw):
    with pytest.raises(Unreadable):
        read_yaml(raw)


def test_a_small_yaml_file_that_unfolds_without_end_is_unreadable():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)
    ]
    with pytest.raises(Unreadable):
        read_yaml("\n".join(lines).encode())


def test_dates_and_merges_of_yaml_stay_plain():
    assert read_yaml(b"a: 2020-01-01\nb: &b {c: 1}\nd: {<<: *b, e: 2}\n---\n---\nf: 3\n") == [
        {"a": "2020-01-01", "b": {"c": 1}, "d": {"c": 1, "e": 2}},
        {"f": 3},
    ]


def manifest(**more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, **more}


def test_only_documents_that_differ_count_on_both_sides():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "namespace": "prod"}}
    assert compare_manifests([manifest(), other], [manifest(data={"a": "b"}), other]).namespaces == {"n"}
    assert compare_manifests([manifest(), other], [manifest()]).namespaces == {"prod"}
    assert compare_manifests([manifest()], [manifest()]).namespaces == frozenset()


@pytest.mark.parametrize(
    ("part", "regions"),
    [
        ({"spec": {"env": [{"name": "AWS_REGION", "value": "us-west-2"}]}}, {"us-west-2"}),
        ({"spec": {"x": {"key": "topology.kubernetes.io/region", "values": ["ap-south-1"]}}}, {"ap-south-1"}),
        ({"spec": {"nodeSelector": {"topology.kubernetes.io/zone": "eu-west-1b"}}}, {"eu-west-1"}),
        ({"spec": {"deep": [{"where": "europe-west4"}]}}, {"europe-west4"}),
        ({"spec": {"type": "ClusterIP", "text": "not a region"}}, set()),
    ],
)
def test_regions_are_found_wherever_they_are_named(part, regions):
    assert compare_manifests([], [manifest(**part)]).regions == regions


@pytest.mark.parametrize("kind", ["ClusterRole", "Namespace", "CustomResourceDefinition"])
def test_what_is_of_the_whole_cluster_is_outside_any_namespace(kind):
    assert compare_manifests([], [manifest(kind=kind)]).clusters


def file(raw, **more):
    return Side(mode="100644", size=len(raw), content=raw, **more)


@pytest.mark.parametrize(
    ("old", "new", "bytes_"),
    [
        (None, b"abc\n", 4),
        (b"a\nb\n", b"a\nb\nc\n", 2),
        (b"a\nb\n", b"b\na\n", 0),
        (b"a\n", b"a\na\na\n", 4),
        (b"\0a", b"\0b", 2),
        (b"x", None, 0),
    ],
)
def test_bytes_are_those_of_lines_that_were_not_there(old, new, bytes_):
    sides = {"old": file(old) if old is not None else None, "new": file(new) if new is not None else None}
    assert added_bytes(Touched(path="x", **sides)) == bytes_


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a/main.tf", "terraform"), ("Chart.yaml", "helm"), ("x/Pulumi.dev.yaml", "pulumi"), ("roles/x/tasks.yml", "ansible"),
        ("db/migrate/1_x.rb", "migration"), ("app/migrations/0001_x.py", "migration"), ("app/migrations/__init__.py", None),
        ("schema.prisma", "prisma"), ("app.py", None), ("cdk.json", "cdk"), ("serverless.yml", "serverless"),
    ],
)  # fmt: skip
def test_kinds_that_cannot_be_read_are_recognised(path, kind):
    assert recognise(path, b"") == kind


def test_globs():
    assert matches("a/b/c.py", "a/**")
    assert matches("c.py", "**/c.py")
    assert matches("a/b/c.py", "**/c.py")
    assert matches("ab", "a?")
    assert not matches("a/b", "a?b")
    assert not matches("a/b", "*")
    assert not matches("a.py\n", "a.py")
    assert matches_any_case(".GitHub/x", [".github/**"])


def test_iam_documents_of_real_size_are_compared_quickly():
    many = [allow([f"s3:Action{i}{j}" for j in range(40)], f"arn:{i}") for i in range(40)]
    assert not compare_iam(document(*many), json.loads(json.dumps(document(*reversed(many))))).actions

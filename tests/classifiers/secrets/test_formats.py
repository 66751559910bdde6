"""Known formats of secrets are removed, ordinary lines stay."""

import base64
import random
import re

import pytest

from classifiers.redaction import redact
from classifiers.secrets.finder import PLACEHOLDER, SecretFinder
from classifiers.secrets.formats import SecretFormat, secret_formats
from tests.classifiers.secrets.samples import DIGITS, LETTERS, reads_without_limit, sample, without_lookarounds

pytestmark = pytest.mark.slow

SAMPLES = 12  # of each format
TRIES = 200  # for a sample that its own expression matches
SHORTEST = 4  # characters of a secret; shorter ones are in the text around them by chance
RECALL = 0.99
FALSE = 0.005
LINES = ("%s", "a\n%s\nb")  # contexts of a format that ends with its line
CONTEXTS = ("%s", "found %s in the environment", "[rank0]: X=%s", '{"x": "%s"}', "line one\\n%s\\nline two", "a\n%s\nb")
HIDDEN = "hunter2S3cret"
KEY = base64.b64encode(bytes(range(96))).decode()
PEM = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY[:64]}\n{KEY[64:]}\n-----END OPENSSH PRIVATE KEY-----\n"
WITH_HIDDEN = [
    f"docker login -u bob -p {HIDDEN} registry.example",
    f"docker login registry.example --username bob --password {HIDDEN}",
    f"podman login -u=bob -p={HIDDEN} registry.example",
    f"helm registry login ghcr.example -u ana -p {HIDDEN}",
    f"mysql -h db -uroot -p{HIDDEN} app",
    f"mysqldump -u root -p'{HIDDEN} x' app > dump.sql",
    f"mongosh --host db -u admin -p {HIDDEN}",
    f"sshpass -p '{HIDDEN} and more' ssh node12",
    f"sshpass -p{HIDDEN} ssh node12",
    f"curl -s -u ana:{HIDDEN} https://store.example/x",
    f"curl --user 'ana:{HIDDEN}' -O https://store.example/x",
    f"curl -O https://store.example/x \\\n  -u ana:{HIDDEN}",
    f"wget --user=ana --password={HIDDEN} https://store.example/x",
    f"redis-cli -h cache -a {HIDDEN} ping",
    f"ldapsearch -x -D cn=admin -w {HIDDEN} uid=ana",
    f"ipmitool -I lanplus -H bmc7 -U ADMIN -P {HIDDEN} chassis power cycle",
    f"racadm -r bmc7 -u root -p {HIDDEN} getsel",
    f"htpasswd -b .htpasswd ana {HIDDEN}",
    f"vault login -method=token {HIDDEN}xyz",
    f"az login --service-principal -u app -p {HIDDEN} --tenant t",
    f"aws configure set aws_secret_access_key {HIDDEN}",
    f"mc alias set store https://store.example ana12345 {HIDDEN}",
    f"zip -r -P {HIDDEN} out.zip run/",
    f"smbclient //nas/share -U ana%{HIDDEN}",
    f"lftp -u ana,{HIDDEN} sftp://store.example",
    f"openssl pkcs12 -in a.p12 -passin pass:{HIDDEN} -nodes",
    f"kubectl create secret generic db --from-literal=password={HIDDEN}",
    f"gpg --batch --passphrase {HIDDEN} -d run.gpg",
    f"echo {HIDDEN} | docker login -u bob --password-stdin registry.example",
    f"echo '{HIDDEN}' | sudo -S mount -a",
    f"mount -t cifs //nas/x /mnt -o username=ana,password={HIDDEN},uid=5",
    f"machine store.example login ana password {HIDDEN}",
    f"db.example:5432:runs:ana:{HIDDEN}",
    f'conn.simple_bind_s("cn=admin,dc=hpc", "{HIDDEN}")',
    f"schtasks /create /ru ana /rp {HIDDEN} /tn t",
    f"ftp> user ana {HIDDEN}",
    f"ftp.log: 331 Password required\nPASS {HIDDEN}",
    f"send(b'AUTH {HIDDEN}\\r\\n')",
    f"*2\\r\\n$4\\r\\nAUTH\\r\\n$14\\r\\n{HIDDEN}\\r\\n",
    f'run="curl -u \\"ana:{HIDDEN}\\" https://store.example"',
    f"INSERT INTO users(id, name, password, mail) VALUES (1, 'ana', '{HIDDEN}', 'a@b.example')",
    f"ansible-vault encrypt_string '{HIDDEN}' --name db",
    f"echo -n '{HIDDEN}' | base64",
    f'PASSWORD="correct {HIDDEN} staple"',
    f"DB_PASSWORD='correct {HIDDEN} staple'",
    f'{{\\"password\\": \\"correct {HIDDEN} staple\\"}}',
    f"postgresql://ana:a/b{HIDDEN}@db.example/runs",
    f"postgresql+psycopg://ana:x@{HIDDEN}@db.example:5432/runs",
    f"mongodb+srv://ana:{HIDDEN}/x@cluster.example/runs",
    f"redis://:{HIDDEN}@cache:6379/0",
    f"Server=db;User Id=ana;Password={HIDDEN};Encrypt=True",
    f"Endpoint=sb://x.example/;SharedAccessKeyName=n;SharedAccessKey={KEY[:43]}=;Name={HIDDEN[:0]}",
    f"X-Api-Key: {HIDDEN}99",
    f'{{"auths": {{"registry.example": {{"auth": "{base64.b64encode(f"bob:{HIDDEN}".encode()).decode()}"}}}}}}',
    f"  .dockerconfigjson: {KEY}",
    f"    client-key-data: {KEY}",
    f"  tls.key: {base64.b64encode(PEM.encode()).decode()}",
    f"apiVersion: v1\ndata:\n  login: {base64.b64encode(HIDDEN.encode()).decode()}\nkind: Secret\nmetadata:\n",
    f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  login: {HIDDEN}\n",
    f"cat key\n{PEM}",
    PEM.replace("\n", "\\n"),
    "\n".join(f"[rank0]: {line}" for line in PEM.splitlines()),
    PEM.replace("OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
    f"key: {base64.b64encode(PEM.encode()).decode()}",
    f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n{KEY[:64]}\n{KEY[64:]}\n",
    f"[Interface]\nPrivateKey = {KEY[:43]}=\n",
]
ORDINARY = (
    "step {n}/{n} loss {f} lr {f} grad_norm {f} tokens/s {n}",
    "[{h8}-{h4}-{h4}-{h4}-{h12}] worker {n} joined at 10.{d}.{d}.{d}:{n}",
    "commit {h40} (HEAD -> main) Fix the loader",
    "sha256:{h64} pulled image registry.example/team/train:{h8}",
    "NCCL INFO comm 0x{h12} rank {d} nranks {d} cudaDev {d} busId {h4}0 commId 0x{h16} - Init START",
    "export MASTER_ADDR=$(hostname -s) MASTER_PORT={n} TOKEN=$HF_TOKEN PASSWORD=${{DB_PASSWORD}}",
    'File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/linear.py", line {d}, in forward',
    "(lm_head): Linear(in_features={n}, out_features={n}, bias=False)",
    "pad_token_id={d} eos_token_id={n} max_new_tokens={n} tokenizer=meta-llama/Llama-3-8B past_key_values=None",
    "wandb: Syncing run {w}-{w}-{d} at https://wandb.example/team/project/runs/{w8}",
    "Xid (PCI:0000:{h2}:00): 79, pid={n}, name=python, GPU has fallen off the bus.",
    "slurmstepd: error: *** STEP {n}.0 ON gpu{d} CANCELLED AT 2026-11-20T03:41:57 DUE TO TIME LIMIT ***",
    'Downloading shards: model-{d}-of-{d}.safetensors etag "{h32}" size {n}',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} ana@login1",
    "srun -p gpu -u -n {d} --mem {n} python train.py -u --port {n} -p {n}",
    "docker run -p 8080:80 -u 1000:1000 registry.example/train:{h8}",
    "mysql Ver 8.0.{d} for Linux on x86_64, connection id {n}",
    "curl -fsSL -u $USER:$TOKEN https://store.example/file-{h8}.tar.gz",
    "uid={n}(ana) gid={n}(ana) groups={n}(gpu) job_key=step-{n}-rank{d} cache_key={h64}",
    "etcd: member {h16} is healthy, revision {n}, key /registry/pods/ns/train-{w8}",
    "RuntimeError: CUDA error: device-side assert triggered at /pytorch/aten/src/ATen/native/cuda/Loss.cu:{d}",
    "hf_transfer enabled, loading {w}/{w}-{d}b revision {h40}",
    "Traceback: KeyError: 'access_token' while reading config {w}.yaml",
    'auth: user ana authenticated by pam, session {n} opened, secret "hf-token" mounted',
    "git clone https://code.example/{w}/{w}.git at {h8}, ssh://git@code.example:2222/{w}/x@v{d}",
    "node {w}-{h8}-{w4}: Normal Pulled image in {f}s, token expired: false, password: invalid",
    "bios {h4}:{h4} mlx5_{d}: port guid 0x{h16} lid {n} sm_key 0x{h16}",
    "https://store.example/data/part-{n}.parquet?part={n}&version={h32}",
    "http://10.{d}.{d}.{d}:8080/api/v1/runs/{h32}@main",
    "checkpoint s3://bucket/{w}/step-{n}/model-{h8}.pt md5 {h32} uploaded",
)


def test_the_catalogue_has_a_source_for_each_of_many_formats() -> None:
    formats = secret_formats()
    assert len(formats) >= 250
    assert len({one.name for one in formats}) == len(formats)
    assert all(re.fullmatch(r"gitleaks [a-z0-9-]+|https://\S+", one.source) for one in formats)


def test_known_formats_are_removed_wherever_they_stand() -> None:
    chance = random.Random(17)
    missed: list[str] = []
    total = 0
    for one in secret_formats():
        for number in range(SAMPLES):
            text, secrets = made(one, chance)
            total += 1
            contexts = LINES if r"(?=\n|\Z)" in one.pattern else CONTEXTS
            cleaned = redact(contexts[number % len(contexts)] % text)
            if any(part.strip("\"'") in cleaned for part in secrets) or PLACEHOLDER not in cleaned:
                missed.append(f"{one.name}: {text!r}")
    assert len(missed) <= (1 - RECALL) * total, missed


def made(one: SecretFormat, chance: random.Random) -> tuple[str, list[str]]:
    """A sample of a format, and its secrets."""
    form = re.compile(one.pattern, re.IGNORECASE if one.kind == "near" else 0)
    tries = 0
    while True:
        tries += 1
        # After a space alone a value has to be random, which a value of hexadecimal digits is not.
        pattern = one.pattern.replace("|(?P<gap> )", "")
        text, groups = sample(without_lookarounds(pattern).replace("(?i:", "(?:"), chance)
        secrets = [part for name, part in groups.items() if name.startswith("secret")]
        # What an expression demands of the text around a part is left out of a sample: some do not match.
        if tries < TRIES and form.match(text) is None:
            continue
        if any(len(part.strip("\"'")) < SHORTEST for part in secrets):
            continue
        # The value after a name may be a word.
        if one.kind != "near" or all(any(letter in DIGITS for letter in part) for part in secrets):
            return text, secrets


@pytest.mark.parametrize("text", WITH_HIDDEN)
def test_secrets_in_commands_files_and_addresses_are_removed(text: str) -> None:
    cleaned = redact(text)
    assert PLACEHOLDER in cleaned
    for part in (HIDDEN, KEY[:43], KEY[70:90], base64.b64encode(HIDDEN.encode()).decode(), "staple"):
        assert part not in cleaned
    assert redact(cleaned) == cleaned


@pytest.mark.parametrize("before", ["", "a", "ab", "user: ana, password: "])
def test_secrets_in_base64_are_removed(before: str) -> None:
    chance = random.Random(3)
    kinds = [
        one for one in secret_formats() if one.kind == "begins" and len(one.text) >= 4 and one.text[-1] not in "/="
    ]
    left = []
    for one in kinds:
        text, _ = made(one, chance)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(f"{before} {text}\n".encode()).decode()
            if encoded[8:] in redact(f"data {encoded} end"):
                left.append(one.name)
    assert len(left) <= (1 - RECALL) * 2 * len(kinds), left


@pytest.mark.parametrize(
    "encoded",
    [
        f"password={HIDDEN}".encode().hex(),
        f'{{"password": "{HIDDEN}"}}'.encode().hex().upper(),
        base64.b64encode(f'{{"user": "ana", "password": "{HIDDEN}"}}'.encode()).decode(),
        base64.b64encode(f"db:\n  api_key: {HIDDEN}99\n".encode()).decode(),
    ],
)
def test_the_value_of_a_secret_is_removed_with_its_encoded_name(encoded: str) -> None:
    assert redact(f"body {encoded} end") == f"body {PLACEHOLDER} end"


@pytest.mark.parametrize(
    "line",
    ["export HF_TOKEN=hf_" + "x" * 34, "key sk-" + "x" * 24, "Token: gho_" + "*" * 36, "OPENAI_API_KEY=sk-****1a2b"],
)
def test_a_masked_token_stays(line: str) -> None:
    assert redact(line) is line


def test_a_token_without_a_fixed_beginning_is_removed_as_a_whole_word_alone() -> None:
    token = "SU2BWNMSE4PXLUIS2ZYXPOJGUEYUOGN7KNFIX55XOFKUCM3WDIOEDSNTYV"
    assert redact(f"using {token}.") == f"using {PLACEHOLDER}."
    line = f"using {token[1:]} now"
    assert redact(line) is line


def test_ordinary_lines_stay() -> None:
    chance = random.Random(11)
    lines = [filled(ORDINARY[number % len(ORDINARY)], chance) for number in range(1_000)]
    changed = [line for line in lines if redact(line) is not line]
    assert len(changed) <= FALSE * len(lines), changed


def filled(template: str, chance: random.Random) -> str:
    """The template with random numbers (n, d, f), hexadecimal digits (h), letters (w) and base64 (b)."""

    def value(hit: re.Match[str]) -> str:
        kind, count = hit[1], int(hit[2] or 6)
        if kind in "dn":
            return str(chance.randint(0, 255 if kind == "d" else 10**6))
        if kind == "f":
            return f"{chance.random():.4f}"
        letters = {"h": "0123456789abcdef", "w": LETTERS[26:], "b": LETTERS + DIGITS + "+/"}[kind]
        return "".join(chance.choices(letters, k=count))

    return re.sub(r"\{([dnfhwb])(\d*)\}", value, template).replace("{{", "{").replace("}}", "}")


def test_no_format_reads_on_without_limit() -> None:
    """A text of nothing but the beginnings of a format would take time that grows with its square."""
    patterns = {one.pattern for several in SecretFinder()._patterns for one in several}
    assert not [one for one in patterns if reads_without_limit(one)]


@pytest.mark.parametrize("ending", ["", " ", "\n", " -p ", "=a", ": '"])
def test_a_text_of_markers_alone_can_be_redacted(ending: str) -> None:
    for marker in SecretFinder()._markers:
        text = (marker + ending) * (600 // (len(marker) + len(ending)))
        assert len(redact(text)) <= len(text) + text.count(marker) * len(PLACEHOLDER)


def test_letters_that_get_longer_in_lower_case_hide_nothing_in_a_list_of_arguments() -> None:
    assert redact("['İİİİİİİİİİ', 'mysql', '-pTigerLily99', 'shop']") == (
        "['İİİİİİİİİİ', 'mysql', '-p[redacted]', 'shop']"
    )


def test_an_entry_with_several_fixed_texts_is_one_format_for_each() -> None:
    names = {one.name: one.text for one in secret_formats()}
    assert names["Stripe key: sk_live_"] == "sk_live_"
    assert names["Stripe key: rk_test_"] == "rk_test_"


@pytest.mark.parametrize(
    "token",
    [
        KEY[:33] + "+ASbQ9x2Lk=",
        KEY[:76] + "+ABaQ9x2Lk==",
        "xoxc-204417781923-771204436518-9120447713348-" + "4fa07c1e9b3d5a62" * 4,
        "gloas-" + "4fa07c1e9b3d5a62" * 4,
        "b7k2q5wz3xn4mv6c" * 3 + "h2j7",
    ],
)
def test_tokens_of_known_services_are_removed_whole(token: str) -> None:
    assert redact(f"retry 3 (cred={token}, host=db01)") == f"retry 3 (cred={PLACEHOLDER}, host=db01)"


def test_values_of_a_service_are_removed_after_an_element() -> None:
    value = "55d9790e-ec61-41f0-93b9-e7eb7614ce0d:9cafaca8ae6b7ae06d6ded0772b85cf0"
    assert redact(f'os.environ["FAL_KEY"] = "{value}"') == f'os.environ["FAL_KEY"] = "{PLACEHOLDER}"'
    assert redact(f"kubeadm join x:6443 --certificate-key {'4fa07c1e' * 8}").endswith(f"-key {PLACEHOLDER}")

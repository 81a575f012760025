# SPDX-License-Identifier: Apache-2.0
"""Mail through a server that others wrote (aiosmtpd): what comes out there is what a mail program gets. Faults that no
server makes by itself are made by the stand-in (test_alerts_ways.py), which is held here against the real one."""

import base64
import datetime
import email
import email.policy
import json
import re
import struct
import zlib

import pytest
from mailserver import MailServer
from realmail import MailLine, RealMail, authority
from receiver import Receiver
from test_alerts import house
from test_alerts_ways import incident_of, tellings
from test_argusd_metrics import Training

from argusd import needs_argusd, until

pytestmark = needs_argusd

OPS, GONE, LATE = (f"{name}@example.org" for name in ("ops", "gone", "late"))
ROUTES = "  routes: [{to: [%s], kinds: [job]}]"
HEADERS = ["Date", "From", "To", "Subject", "Message-ID", "MIME-Version", "Auto-Submitted", "Content-Type",
           "Content-Transfer-Encoding"]  # fmt: skip


def mail_house(home, url, *to, more="", receivers=(), **keys):
    said = f'kind: mail, from: argus@example.org, to: [{", ".join(to)}], url: "{url}"{more}'
    receivers = {"mail": said, **dict(receivers)}
    return house(home, receivers, more=ROUTES % ", ".join(receivers), **keys)


def parsed(row):
    """By a parser that takes no defect, neither of the message nor of a header."""
    mail = email.message_from_bytes(row["body"], policy=email.policy.strict)
    assert not mail.defects
    for name, value in mail.items():
        assert not value.defects, (name, value, value.defects)
    return mail


def text_of(mail):
    return mail.get_payload(decode=True).decode()


def about(rows, job):
    return [row for row in rows if job in text_of(parsed(row))]


def mail_about(server, job, recipient=OPS):
    return until(lambda: about(server.mails(recipient), job), f"a mail about {job}")[0]


def told(argusd, job, state):
    """(state, why) of the mail about this job, once it is in this state."""
    incident = incident_of(argusd, job)
    return until(lambda: (t := tellings(argusd, incident)["mail"])[0] == state and t, f"its mail is {state}")


def trouble(argusd):
    return next(r["trouble"] for r in argusd.get("/v1/receivers")["receivers"] if r["name"] == "mail")


def failed_job(argusd):
    job = argusd.submit("exit 3")
    argusd.wait_over(job)
    return job


def held_job(argusd, gpus):
    """It waits for a cluster of that size, for ever."""
    return argusd.submit("echo held", nnodes=gpus, n_gpus_per_node=1)


# ---- the message ----


def test_a_message_arrives_whole(tmp_path):
    """A webhook beside it hears the same: title and lines in Chinese are those of the mail."""
    with RealMail(tmp_path) as server, Receiver() as hook:
        beside = {"hook": f'kind: webhook, url: "{hook.url}"'}
        with mail_house(tmp_path, server.url, OPS, LATE, more=", language: zh", receivers=beside) as argusd:
            job = failed_job(argusd)
            rows = [mail_about(server, job, to) for to in (OPS, LATE)]
            said = until(lambda: hook.titled(job), "the webhook hears of it")[0]
            assert told(argusd, job, "taken") == ("taken", None)
        assert rows[0]["body"] == rows[1]["body"] and rows[0]["from"] == "argus@example.org"
        check_headers(parsed(rows[0]), said["incident"]["opened_at"])
        check_text(parsed(rows[0]), said["title_zh"], said["lines_zh"])
        check_bytes(rows[0]["body"])
        assert job in said["title_zh"]


def check_headers(mail, opened_at):
    assert sorted(mail.keys()) == sorted(HEADERS)  # each once
    assert [a.addr_spec for a in mail["From"].addresses] == ["argus@example.org"]
    assert [a.addr_spec for a in mail["To"].addresses] == [OPS, LATE]
    assert re.fullmatch(r"<[^<>\s@]+@example\.org>", mail["Message-ID"])
    assert mail.get_content_type() == "text/plain" and mail.get_content_charset() == "utf-8"
    sent = mail["Date"].datetime
    assert sent.utcoffset() == datetime.timedelta()
    assert sent >= datetime.datetime.fromisoformat(opened_at).replace(microsecond=0)


def check_text(mail, title, lines):
    assert re.search(r"[\u4e00-\u9fff]", title)
    assert title.startswith(mail["Subject"]) and len(mail["Subject"].encode()) >= min(len(title.encode()), 178)
    assert text_of(mail) == "".join(f"{part}\n" for part in (title, *(f"- {x}" for x in lines)))


def check_bytes(raw):
    """What no parser of Python's minds: lines and characters of RFC 5322, words of RFC 2047."""
    assert raw.isascii() and raw.endswith(b"\r\n")
    lines = raw.split(b"\r\n")
    assert not any(b"\r" in x or b"\n" in x or b"\0" in x for x in lines)
    assert max(map(len, lines)) <= 998
    head = raw.partition(b"\r\n\r\n")[0]
    words = re.findall(rb"=\?.*?\?=", head)
    assert words and max(map(len, words)) <= 75
    for word in words:
        base64.b64decode(word.split(b"?")[3], validate=True).decode()  # a whole character at either end


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_a_long_chinese_subject_is_cut_between_characters(tmp_path, before):
    """Wherever its 180 bytes end; and no line with an encoded word is longer than the 76 of RFC 2047."""
    with RealMail(tmp_path) as server, mail_house(tmp_path, server.url, OPS, more=", language: zh") as argusd:
        text = before + "很长的一句话" * 20
        rule = {"of": "job", "when": "gpus > 200", "text": "'{name}' is large", "zh": text + "，'{name}'"}
        assert argusd.call("PUT", "/v1/alert_rules/large", rule).status == 201
        row = mail_about(server, held_job(argusd, 222))
        subject = parsed(row)["Subject"]
        assert text.startswith(subject.partition("] ")[2]) and 178 <= len(subject.encode()) <= 180
        check_bytes(row["body"])
        head = row["body"].partition(b"\r\n\r\n")[0].split(b"\r\n")
        assert max(len(x) for x in head if b"=?" in x) <= 76


def test_an_alert_of_a_metric_has_its_curve_as_a_picture(tmp_path):
    """A PNG by the file's own checks; the text is the first part and says what it says without a picture."""
    with RealMail(tmp_path) as server, mail_house(tmp_path, server.url, OPS) as argusd:
        t = Training(argusd, alerts=["actor/entropy < 0.5 for 3 steps"])
        t.steps(1, 5, **{"actor/entropy": 1.0})
        t.until_step(5)
        t.steps(6, 8, **{"actor/entropy": 0.25})
        row = until(lambda: [r for r in server.mails(OPS) if b"image/png" in r["body"]], "a mail with a picture")[0]
        check_bytes(row["body"])
        mail = parsed(row)
        assert mail.get_content_type() == "multipart/mixed"
        text, picture = mail.iter_parts()
        assert "'actor/entropy' is 0.25 since step 6" in text.get_content() and t.id in text.get_content()
        assert (picture.get_content_type(), picture.get_filename()) == ("image/png", f"{t.id}.png")
        assert picture.get_content_disposition() == "inline"
        width, height, rows = read_png(picture.get_content())
        assert (width, height) == (400, 120) and len(rows) == height * (1 + width // 4)
        assert len(set(rows)) > 4, "something is drawn"
        t.let_go()
        argusd.wait_over(t.id)


def read_png(data):
    """(width, height, the rows as they are packed), each chunk held against its sum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(body),)
        chunks[body[:4]] = body[4:]
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours, len(chunks[b"PLTE"])) == (2, 3, 12)
    return width, height, zlib.decompress(chunks[b"IDAT"])


# ---- who takes it, and who does not ----


def test_one_refused_recipient_of_three_is_told_and_the_others_get_it(tmp_path):
    with RealMail(tmp_path, refused=[GONE]) as server, mail_house(tmp_path, server.url, LATE, GONE, OPS) as argusd:
        job = failed_job(argusd)
        _, why = told(argusd, job, "taken")
        assert GONE in why and "550" in why and OPS not in why and LATE not in why
        refused = [e for e in argusd.events() if e["kind"] == "alert_refused"]
        assert [e["object"] for e in refused] == ["receiver/mail"] and GONE not in json.dumps(refused)
        assert GONE in argusd.said()
        view = argusd.call("GET", f"/v1/incidents/{incident_of(argusd, job)}", token="user").json()
        assert [(t["state"], t["why"]) for t in view["tellings"]] == [("taken", None)]  # the answer is for admins
        assert [row["to"] for row in about(server.mails(), job)] == [LATE, OPS]


@pytest.mark.parametrize("moment", ["RCPT", "DATA"])
def test_what_is_put_off_with_451_is_taken_later(tmp_path, moment):
    """At a recipient, as grey-listing does, or at the end of the whole message."""
    said = {"deferred": {LATE: 2}} if moment == "RCPT" else {"busy": 2}
    with (
        RealMail(tmp_path, **said) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, LATE) as argusd,
    ):
        job = failed_job(argusd)
        assert told(argusd, job, "taken") == ("taken", None)
        assert len(about(server.mails(), job)) == 1
        assert [number for talk in line.talks for _, number in talk.steps()].count(451) == 2
        assert f"{LATE}: the mail server answered with 451" in argusd.said()
        assert not [e for e in argusd.events() if e["kind"] == "alert_refused"]


def test_a_message_above_the_servers_size_is_refused_and_holds_nothing_behind_it(tmp_path):
    with (
        RealMail(tmp_path, size=1200) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, OPS, LATE) as argusd,
    ):
        rules = {
            "large": {"of": "job", "when": "gpus > 200", "text": "'{name}' " + "x" * 450, "fix": "y" * 450},
            "small": {"of": "job", "when": "gpus > 100 and gpus < 200", "text": "'{name}' is there"},
        }
        for name, rule in rules.items():
            assert argusd.call("PUT", f"/v1/alert_rules/{name}", rule).status == 201
        large, small = held_job(argusd, 222), held_job(argusd, 111)
        _, why = told(argusd, large, "refused")
        assert "552" in why and OPS in why and LATE in why
        assert told(argusd, small, "taken") == ("taken", None)
        assert [(row["to"], bool(about([row], small))) for row in server.mails()] == [(OPS, True), (LATE, True)]
        assert b"250-SIZE 1200\r\n" in line.talks[0].said(by_client=False)
        assert [n for talk in line.talks for _, n in talk.steps()].count(552) == 2  # one of each address, no more


# ---- a server that goes away ----


def test_a_server_that_goes_away_in_the_middle_of_a_message_hears_it_once(tmp_path):
    with (
        RealMail(tmp_path) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, OPS) as argusd,
    ):
        line.hold(200)
        job = failed_job(argusd)
        until(line.held.is_set, "200 bytes of it are there")
        server.kill()
        told(argusd, job, "on_the_way")
        until(lambda: trouble(argusd), "argusd has seen that nobody is there")
        assert server.mails() == []
        server.start()
        first = mail_about(server, job)
        assert told(argusd, job, "taken") == ("taken", None)
        after = failed_job(argusd)
        mail_about(server, after)
        assert about(server.mails(), job) == [first]


def test_a_mail_whose_answer_was_lost_comes_again_as_the_same(tmp_path):
    """At least once: who has it twice can tell by its Message-ID."""
    with (
        RealMail(tmp_path) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, OPS) as argusd,
    ):
        line.lose_answer()
        job = failed_job(argusd)
        assert told(argusd, job, "taken") == ("taken", None)
        rows = about(server.mails(), job)
        assert len(rows) == 2 and len({parsed(row)["Message-ID"] for row in rows}) == 1
        assert len({text_of(parsed(row)) for row in rows}) == 1


# ---- TLS and logins ----

PASSWORD = "right-and-hidden-key"


def wire(line):
    return b"".join(talk.said(by_client) for talk in line.talks for by_client in (True, False))


def shows_password(text):
    """Also as PLAIN and LOGIN have it."""
    forms = [PASSWORD.encode(), base64.b64encode(PASSWORD.encode()), base64.b64encode(f"\0argus\0{PASSWORD}".encode())]
    return [form for form in forms if form in text]


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_login_over_tls_of_an_authority_of_ones_own(tmp_path, scheme):
    """STARTTLS, or TLS from the first byte on. A refused login is no answer to the mail: that goes once the secret is
    right."""
    cert, key, ca = authority(tmp_path)
    login = f', user: argus, password: MAIL_PASSWORD, ca_file: "{ca}"'
    secrets = [("MAIL_PASSWORD", "wrong")]
    with (
        RealMail(tmp_path, cert=cert, key=key, at_once=scheme == "smtps", user="argus", password=PASSWORD) as server,
        MailLine(server.port, scheme) as line,
        mail_house(tmp_path, line.url, OPS, more=login, secrets=secrets) as argusd,
    ):
        job = failed_job(argusd)
        until(lambda: "535" in (trouble(argusd) or ""), "the login is refused")
        told(argusd, job, "on_the_way")
        assert server.mails() == []
        assert argusd.call("PUT", "/v1/secrets/MAIL_PASSWORD", {"value": PASSWORD}).status in (200, 201)
        row = mail_about(server, job)
        assert row["tls"] and row["user"] == "argus"
        assert told(argusd, job, "taken") == ("taken", None)
        assert (b"STARTTLS\r\n" in wire(line)) == (scheme == "smtp") and b"MAIL FROM" not in wire(line)
        shown = json.dumps([argusd.get("/v1/receivers"), argusd.get("/v1/alerts"), argusd.events()]) + argusd.said()
        assert not shows_password(shown.encode()) and not shows_password(wire(line))


def test_no_login_without_tls(tmp_path):
    """The server would take it in the clear."""
    login, secrets = ", user: argus, password: MAIL_PASSWORD", [("MAIL_PASSWORD", PASSWORD)]
    with (
        RealMail(tmp_path, user="argus", password=PASSWORD, plain_login=True) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, OPS, more=login, secrets=secrets) as argusd,
    ):
        job = failed_job(argusd)
        until(lambda: trouble(argusd), "it is told that it does not go")
        told(argusd, job, "on_the_way")
        assert b"250-AUTH " in line.talks[0].said(by_client=False)
        assert not {b"AUTH", b"MAIL"} & {said[:4] for talk in line.talks for said, _ in talk.steps()}
        assert server.mails() == [] and not shows_password(wire(line))


def test_a_server_of_an_unknown_authority_gets_nothing(tmp_path):
    """Also without a login, and not in the clear instead."""
    cert, key, _ = authority(tmp_path)
    with (
        RealMail(tmp_path, cert=cert, key=key) as server,
        MailLine(server.port) as line,
        mail_house(tmp_path, line.url, OPS) as argusd,
    ):
        job = failed_job(argusd)
        until(lambda: trouble(argusd), "it is told that it does not go")
        told(argusd, job, "on_the_way")
        assert b"STARTTLS\r\n" in wire(line) and b"MAIL FROM" not in wire(line)
        assert server.mails() == []


# ---- the stand-in ----


def dialogues(home, server, port, bodies):
    """What argusd and a server say to each other, connection by connection, until all who take the mail have it; and
    the names of its headers."""
    home.mkdir()
    with server, MailLine(port(server)) as line, mail_house(home, line.url, GONE, LATE, OPS) as argusd:
        job = failed_job(argusd)
        told(argusd, job, "taken")
        heads = {tuple(email.message_from_bytes(body).keys()) for body in bodies(server)}
        return [[(plain(said), number) for said, number in talk.steps()] for talk in line.talks], heads


def plain(said):
    """A command without what the server's extensions add; of a message that it is one, and ends as one."""
    if said.endswith(b"\r\n.\r\n"):
        return "message"
    return said.decode().strip().partition("> ")[0].rstrip(">")


def test_the_stand_in_says_what_the_real_one_says(tmp_path):
    """To one who is refused, one who is put off once, and one who takes it."""
    real = RealMail(tmp_path, refused=[GONE], deferred={LATE: 1})
    ours = MailServer(refused={GONE}, deferred={LATE: 1})
    talks, heads = dialogues(tmp_path / "real", real, lambda s: s.port, lambda s: [row["body"] for row in s.mails()])
    port_of = lambda s: s.server.server_address[1]  # noqa: E731
    from_ours = dialogues(tmp_path / "ours", ours, port_of, lambda s: [body for _, body in s.took])
    assert (talks, heads) == from_ours
    assert heads == {tuple(HEADERS)}
    hello = talks[0][1][0]
    begin = [("", 220), (hello, 250), ("MAIL FROM:<argus@example.org", 250)]
    taken = [("DATA", 354), ("message", 250)]
    assert hello.startswith("EHLO ") and talks == [
        [*begin, (f"RCPT TO:<{GONE}", 550)],
        [*begin, (f"RCPT TO:<{LATE}", 451)],
        [*begin, (f"RCPT TO:<{OPS}", 250), *taken],
        [*begin, (f"RCPT TO:<{GONE}", 550)],
        [*begin, (f"RCPT TO:<{LATE}", 250), *taken],
    ]

import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, governed, policy, settings } from "../../test/support/governed-ledger.ts";
import { PortalSigner } from "./portal-link.ts";
import { acceptedLanguages, languageOf, type Language } from "#lib/languages.ts";
import { overPage, ownPage } from "./portal-page.ts";
import { plotRange } from "./portal-plot.ts";

const NOW = 1_785_312_000;
const address = (language: Language) => `?p="&lang=${language}`;
const inLanguages = (header: string) => languageOf(acceptedLanguages(header));

test("a link verifies for five minutes, with its own key, as it was made", () => {
  const signer = new PortalSigner();
  const query = new URLSearchParams(signer.query(["b", "a"], NOW));
  assert.deepEqual(signer.verify(query, NOW + 300), ["a", "b"]);
  assert.equal(signer.verify(query, NOW + 301), null);
  assert.equal(signer.verify(query, NOW - 301), null, "too far ahead");
  assert.equal(new PortalSigner().verify(query, NOW), null);
  for (const name of ["p", "e", "s"]) {
    const changed = new URLSearchParams(query);
    changed.set(name, `${changed.get(name)}1`);
    assert.equal(signer.verify(changed, NOW), null, name);
    changed.delete(name);
    assert.equal(signer.verify(changed, NOW), null, `no ${name}`);
  }
  assert.equal(signer.verify(new URLSearchParams(signer.query(["a"], NOW).replaceAll("a", "z")), NOW), null);
});

test("of more than eight policies the link names eight and still verifies", () => {
  const signer = new PortalSigner();
  const ids = Array.from({ length: 12 }, (_, at) => `p${at}`);
  assert.equal(signer.verify(new URLSearchParams(signer.query(ids, NOW)), NOW)?.length, 8);
});

test("the pages escape names, say when the quota frees, and speak four languages", async () => {
  const quota = {
    totalBytes: 1000,
    uploadBytes: 0,
    downloadBytes: 0,
    windowMs: 3_600_000,
    overageUploadBps: 64_000,
    overageDownloadBps: 2_000_000,
  };
  const core = governed();
  await core.apply(settings({ global: policy({ name: `<b>"x"`, quota }) }));
  core.session().reserve("download", 2048);
  const { policies } = core.governance.status();
  assert.equal(policies[0]?.freeAt, NOW + 3600 + 60);
  const english = overPage(inLanguages("de, en;q=0.8, zh;q=0.1"), policies, address);
  assert.match(english, /&#60;b&#62;&#34;x&#34;.*2\.0 KiB.*64 Kbit\/s.*2 Mbit\/s.*2026-07-29 09:01 UTC/s);
  assert.match(overPage(inLanguages("zh-CN,zh;q=0.9"), policies, address), /lang="zh".*流量配额已用完/s);
  const none = () => [];
  const range = plotRange("hour", NOW, core.governance.reportTime());
  assert.match(
    ownPage("en", core.governance.statusOf("192.0.2.1"), none, range, address),
    /Left<\/dt><dd>0 B/,
  );
  assert.match(ownPage("en", [], none, range, address), /No policy/);
  assert.match(overPage("fa", policies, address), /dir="rtl".*سهمیهٔ ترافیک تمام شد.*۲٫۰ KiB.*۷ مرداد ۱۴۰۵/s);
  assert.match(
    overPage("ru", policies, address),
    /href="\?p=&#34;&#38;lang=fa" lang="fa".*aria-current="true">Русский</s,
  );
  await core.apply(null);
});

test("a device sees the hours of its own policies as a drawing, in its language; what all use is not drawn", async () => {
  const core = governed();
  const devices = [{ ...policy({ id: "tv" }), mac: null, sourceCidrs: [cidr("192.0.2.1")] }];
  await core.apply(settings({ global: policy({ id: "all" }), devices }));
  core.session().reserve("download", 3072);
  core.clock.pass(3600);
  core.session().reserve("upload", 1024);
  core.session({ ip: "192.0.2.2" }).reserve("upload", 9999);
  const now = core.clock.wall / 1000;
  const range = plotRange("hour", now, core.governance.reportTime());
  const hours = { granularity: "hour", from: range.earlierFrom, to: now + 1 } as const;
  const hoursOf = (id: string) => core.governance.report({ key: `device:${id}`, ...hours });
  const page = (language: Language, ip: string) =>
    ownPage(language, core.governance.statusOf(ip), hoursOf, range, address);
  const english = page("en", "192.0.2.1");
  assert.match(english, /aria-label="The last 24 hours"/);
  assert.match(english, /08:00 UTC: upload 0 B, download 3\.0 KiB.*09:00 UTC: upload 1\.0 KiB, download 0 B/);
  assert.equal(english.match(/<svg/g)?.length, 1);
  assert.match(english, /class="down" x="264" y="0" width="9" height="80"/);
  assert.match(page("zh", "192.0.2.1"), /aria-label="最近 24 小时".*上传 1\.0 KiB/);
  assert.doesNotMatch(page("en", "192.0.2.2"), /<svg/);
  await core.apply(null);
});

test("days and months are compared with as many before them, in the zone of reports", async () => {
  const core = governed();
  const devices = [{ ...policy({ id: "tv" }), mac: null, sourceCidrs: [cidr("192.0.2.1")] }];
  const zoned = settings({ devices });
  await core.apply({ ...zoned, reports: { ...zoned.reports, timeZone: "Pacific/Kiritimati" } });
  core.session().reserve("download", 1024);
  core.clock.pass(20 * 86_400);
  core.session().reserve("download", 2048);
  core.clock.pass(20 * 86_400);
  core.session().reserve("download", 512);
  const now = core.clock.wall / 1000;
  const page = (by: "day" | "month") => {
    const range = plotRange(by, now, core.governance.reportTime());
    const query = { key: "device:tv", granularity: by, from: range.earlierFrom, to: now + 1 };
    return ownPage(
      "en",
      core.governance.statusOf("192.0.2.1"),
      () => core.governance.report(query),
      range,
      address,
    );
  };
  const days = page("day");
  assert.match(days, /2026-08-18: upload 0 B, download 2\.0 KiB/); // NOW is 22:00 there on the 29th of July
  assert.match(days, /Together 2\.5 KiB \(\+150%, in the time before 1\.0 KiB\)/);
  assert.match(days, /<a href="\?by=hour&#38;lang=en">/);
  assert.match(page("month"), /2026-07: upload 0 B, download 1\.0 KiB.*2026-08.*2026-09/s);
  await core.apply(null);
});

test("a month's report has every policy by day, beside the month before", async () => {
  const core = governed();
  const devices = [{ ...policy({ id: "tv", name: "TV" }), mac: null, sourceCidrs: [cidr("192.0.2.1")] }];
  await core.apply(settings({ global: policy({ id: "all" }), devices }));
  core.session().reserve("download", 1000);
  core.clock.pass(10 * 86_400);
  core.session().reserve("upload", 500);
  core.clock.pass(30 * 86_400);
  const { governance } = core;
  const report = governance.monthReport(null);
  assert.deepEqual(
    [report.from, report.to, report.isOver],
    [Date.UTC(2026, 7, 1) / 1000, Date.UTC(2026, 8, 1) / 1000, true],
  );
  const tv = report.policies.find(({ key }) => key === "device:tv");
  assert.partialDeepStrictEqual(tv, {
    name: "TV",
    subject: "192.0.2.1/32",
    sum: { upload: 500, download: 0 },
  });
  assert.partialDeepStrictEqual(tv?.before, { upload: 0, download: 1000 });
  assert.deepEqual(
    tv?.days.map(({ start }) => start),
    [Date.UTC(2026, 7, 8) / 1000],
  );
  assert.equal(governance.monthReport("2026-09").isOver, false);
  assert.equal(governance.monthReport("2026-07").policies[0]?.before, null);
  for (const month of ["2026-13", "2026", "", "2026-1", "x"])
    assert.throws(() => governance.monthReport(month), /month: expected/);
  await core.apply(null);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MonthPolicyView, MonthReportView } from "#core/governance.ts";
import { changeText, monthPage } from "./month-page.ts";

const counters = (upload: number, download: number) => ({ upload, download, connections: 3, exceeded: 0 });
const OCTOBER = Date.UTC(2026, 9, 1) / 1000;

const policy = (change: Partial<MonthPolicyView>): MonthPolicyView => ({
  key: "device:a",
  name: "",
  dimension: "device",
  subject: "",
  sum: counters(0, 0),
  before: null,
  days: [],
  ...change,
});
const report = (...policies: readonly MonthPolicyView[]): MonthReportView => ({
  from: OCTOBER,
  to: Date.UTC(2026, 10, 1) / 1000,
  timeZone: "UTC",
  isOver: true,
  policies,
});

test("a month has the busiest policy first, with its change and its days", () => {
  const days = [{ start: OCTOBER + 86_400, counters: counters(1024, 1024) }];
  const page = monthPage(
    report(
      policy({ key: "device:quiet", sum: counters(1, 0) }),
      policy({
        name: "Busy",
        subject: "10.0.0.2/32",
        sum: counters(1024, 1024),
        before: counters(1024, 0),
        days,
      }),
    ),
  );
  assert.match(
    page,
    /Traffic in October 2026.*Busy.*10\.0\.0\.2\/32.*2\.0 KiB.*1\.0 KiB.*\+100 %.*device:quiet/s,
  );
  assert.match(page, /2026-10-02/);
  assert.match(monthPage(report()), /There are no policies/);
  assert.match(monthPage({ ...report(), isOver: false }), /not over/);
  assert.deepEqual([changeText(5, 10), changeText(5, 0), changeText(5, null)], ["-50 %", "", ""]);
});

test("it loads nothing, runs nothing, and escapes every name", () => {
  const evil = `<img src=x onerror=alert(1)>"'&{{`;
  const days = [{ start: OCTOBER, counters: counters(1, 1) }];
  const page = monthPage(report(policy({ key: `device:${evil}`, name: evil, subject: evil, days })));
  assert.doesNotMatch(page, /<img|onerror=alert\(1\)>/);
  assert.doesNotMatch(page, /<[^>]*\s(?:src|href|action|background|on\w+)=/);
  assert.doesNotMatch(page, /url\(|@import|<(?:script|style|link|svg|iframe|form)\b|https?:/);
});

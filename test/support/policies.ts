/** Policies of traffic control, and what a ledger says of them. */
import assert from "node:assert/strict";
import { policy, type Governed } from "./governed-ledger.ts";
import type { RuleSettings } from "#governance/settings.ts";

export const HOUR_MS = 3_600_000;
export const DAY = 86_400;

export const quota = (totalBytes: number, windowMs = HOUR_MS) => ({
  totalBytes,
  uploadBytes: 0,
  downloadBytes: 0,
  windowMs,
  overageUploadBps: 0,
  overageDownloadBps: 8000,
});

export const rule = (id: string, payload = "example.video"): RuleSettings => ({
  ...policy({ id }),
  type: "DOMAIN-SUFFIX",
  payload,
  target: "Proxy",
});

export const VIDEO = { type: "DOMAIN-SUFFIX", payload: "example.video", target: "Proxy" };

export function statusOf({ governance }: Governed, id: string) {
  const found = governance.status().policies.find((one) => one.id === id);
  assert.ok(found, `policy ${id}`);
  return found;
}

export const total = ({ governance, clock }: Governed, key: string) =>
  governance
    .report({ key, granularity: "hour", from: 0, to: clock.wall / 1000 + 1 })
    .reduce((sum, { counters }) => sum + counters.upload + counters.download, 0);

/** A policy as the texts of a form, and back. */
import type { PolicyDocument, PolicyKind, QuotaDocument } from "#ui/api/governance-types.ts";
import { amountText, parseAmount, parseRateLimit, rateLimitText } from "#ui/quantity.ts";
import { WordedError, type PlainKey } from "#ui/words/words.ts";

export interface PolicyFields {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly portal: boolean;
  readonly upload: string;
  readonly download: string;
  readonly total: string;
  readonly totalUpload: string;
  readonly totalDownload: string;
  readonly window: string;
  readonly overageUpload: string;
  readonly overageDownload: string;
  readonly mac: string;
  readonly sources: string;
  readonly type: string;
  readonly payload: string;
  readonly kind: string;
  readonly target: string;
}

export function fieldsOf(policy: PolicyDocument): PolicyFields {
  const { quota = {} } = policy;
  return {
    id: policy.id ?? "",
    name: policy.name ?? "",
    enabled: policy.enabled ?? true,
    portal: policy.portal ?? true,
    upload: rateLimitText(policy["upload-bps"] ?? 0),
    download: rateLimitText(policy["download-bps"] ?? 0),
    total: amountText(quota["total-bytes"] ?? 0),
    totalUpload: amountText(quota["upload-bytes"] ?? 0),
    totalDownload: amountText(quota["download-bytes"] ?? 0),
    window: quota.window ?? "",
    overageUpload: rateLimitText(quota["overage-upload-bps"] ?? 0),
    overageDownload: rateLimitText(quota["overage-download-bps"] ?? 0),
    mac: policy.mac ?? "",
    sources: (policy["source-cidrs"] ?? []).join(", "),
    type: policy.type ?? "",
    payload: policy.payload ?? "",
    kind: policy.kind ?? "group",
    target: policy.target ?? "",
  };
}

/** Throws an `Error` that names the field. What the texts mean beyond their form the Controller judges. */
export function policyOf(kind: PolicyKind, fields: PolicyFields): PolicyDocument {
  return {
    ...given({ id: fields.id.trim(), name: fields.name.trim() }),
    enabled: fields.enabled,
    ...given({
      "upload-bps": rate("common.upload", fields.upload),
      "download-bps": rate("common.download", fields.download),
    }),
    ...quotaOf(fields),
    portal: fields.portal,
    ...subjectOf(kind, fields),
  };
}

function quotaOf(fields: PolicyFields): { quota?: QuotaDocument } {
  const quota: QuotaDocument = given({
    "total-bytes": amount("policy.quota", fields.total),
    "upload-bytes": amount("policy.uploadQuota", fields.totalUpload),
    "download-bytes": amount("policy.downloadQuota", fields.totalDownload),
    window: fields.window.trim(),
    "overage-upload-bps": rate("policy.overageUp", fields.overageUpload),
    "overage-download-bps": rate("policy.overageDown", fields.overageDownload),
  });
  return Object.keys(quota).length === 0 ? {} : { quota: { ...quota, portal: fields.portal } };
}

function subjectOf(kind: PolicyKind, fields: PolicyFields): PolicyDocument {
  const { type, payload, target } = fields;
  if (kind === "rule") return { type: type.trim(), payload: payload.trim(), target: target.trim() };
  if (kind === "target") return { kind: fields.kind, target: target.trim() };
  if (kind === "global") return {};
  const sources = fields.sources
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(asNetwork);
  return { ...given({ mac: fields.mac.trim() }), "source-cidrs": sources };
}

/** People write the address of one device; the Controller needs a prefix length. */
function asNetwork(source: string): string {
  if (source.includes("/")) return source;
  return source.includes(":") ? `${source}/128` : `${source}/32`;
}

/** 0 and "" are no limit and no text: what is absent says the same. */
function given<T extends Readonly<Record<string, string | number>>>(values: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== 0 && value !== ""),
  ) as Partial<T>;
}

export function amount(field: PlainKey, text: string): number {
  const value = parseAmount(text);
  if (value === null) throw new WordedError((t) => t("form.amountWrong", { field: t(field) }));
  return value;
}

export function rate(field: PlainKey, text: string): number {
  const value = parseRateLimit(text);
  if (value === null) throw new WordedError((t) => t("form.rateWrong", { field: t(field) }));
  return value;
}

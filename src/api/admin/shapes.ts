/** Between the names of the admin API and ours. */
import * as z from "zod";
import { jsonObject, queryInt } from "#api/shapes.ts";
import { byNode, type ShownIp } from "./by-node.ts";
import { labelQuery, remarkFields, remarksJson } from "./remarks.ts";
import { limitFields, limitsChangeOf, limitsJson, onlineJson } from "./limits.ts";
import type {
  HistoryView,
  ManagedInboundView,
  UsageStep,
  UsageView,
  UserChange,
  UserDetailView,
  UserView,
} from "#core/users.ts";

const optionalText = () => z.string().optional();

/** Types only: rules of content come later, after the revision. */
const changeFields = {
  name: optionalText(),
  uuid: optionalText(),
  password: optionalText(),
  flow: optionalText(),
  enabled: z.boolean().optional(),
  ...remarkFields,
  ...limitFields,
};
const revision = () => z.int().positive();

export const createBody = jsonObject({ inbound: optionalText(), ...changeFields, revision: revision() });
export const updateBody = jsonObject({ ...changeFields, revision: revision() });
export const revisionBody = jsonObject({ revision: revision() });
export const revisionQuery = z.object({ revision: queryInt(1, Number.MAX_SAFE_INTEGER) });
export const userQuery = z.object({ online: z.enum(["true", "false"]).optional(), by: byNode });
export const usersQuery = z.object({ inbound: z.string().optional(), label: labelQuery, by: byNode });
/** Days of a history that are kept. */
const MOST_DAYS = 62;
export const historyQuery = z.object({
  days: queryInt(1, MOST_DAYS).default(30).meta({ description: "How many, today among them" }),
});
export const byQuery = z.object({ by: byNode });

type ChangeFields = z.output<typeof updateBody>;

export function changeOf(body: ChangeFields): UserChange {
  const { revision: asked, name, uuid, password, flow, enabled, note, labels } = body;
  const limits = limitsChangeOf(body);
  return { revision: asked, name, uuid, password, flow, enabled, limits, note, labels };
}

export function inboundJson(view: ManagedInboundView) {
  const { revision: current, appliedRevision, applied } = view;
  return {
    tag: view.tag,
    type: view.type,
    managed: true,
    credential: view.credential,
    flow: view.hasFlow,
    traffic: true,
    user_count: view.userCount,
    enabled_user_count: view.enabledUserCount,
    revision: current,
    applied_revision: appliedRevision,
    ...(applied === undefined ? {} : { applied }),
    ...(current === appliedRevision ? {} : { pending: true }),
  };
}

/** Without credential and link. */
export function userJson(view: UserView) {
  return {
    id: view.id,
    inbound: view.inbound,
    type: view.type,
    name: view.name,
    flow: view.flow,
    enabled: view.enabled,
    upload_bytes: view.uploadBytes,
    download_bytes: view.downloadBytes,
    traffic_generation: view.trafficGeneration,
    created_at: view.createdAtMs,
    updated_at: view.updatedAtMs,
    active_connections: view.activeConnections,
    revision: view.revision,
    applied_revision: view.appliedRevision,
    ...remarksJson(view),
    ...limitsJson(view),
  };
}

/** Sensitive. */
export function detailJson(
  view: UserDetailView,
  withOnline = false,
  online: readonly ShownIp[] = view.online.map((one) => ({ ...one, node: "" })),
) {
  return {
    ...userJson(view),
    [view.credentialKind]: view.credential,
    ...(view.subscriptionUrl === null ? {} : { subscription_url: view.subscriptionUrl }),
    ...onlineJson(view, online, withOnline),
  };
}

export function usageJson({ stepSeconds, steps }: UsageView) {
  return { step_seconds: stepSeconds, steps: steps.map(stepJson) };
}

export function historyJson({ removedAtMs, days, hours }: HistoryView) {
  return {
    days: days.map(stepJson),
    hours: hours.map(stepJson),
    ...(removedAtMs === null ? {} : { removed_at: removedAtMs }),
  };
}

function stepJson({ startSeconds, uploadBytes, downloadBytes }: UsageStep) {
  return { start: startSeconds * 1000, upload_bytes: uploadBytes, download_bytes: downloadBytes };
}

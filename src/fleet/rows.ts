/** Users as the database has them. */
import { remarksJson, remarksOf, storedRemarks } from "#users/remarks.ts";
import { limitsJson, limitsOf, storedLimits } from "#users/stored-limits.ts";
import { isToken } from "#users/tokens.ts";
import type { UserRecord } from "#users/user-book.ts";
import { FleetError } from "./errors.ts";
import { hashOfToken, type TokenSeal } from "./seal.ts";

/** One row of `weir.app_user`, as the driver gives it: bigint is text. */
export interface UserRow {
  readonly id: string;
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly limits: unknown;
  readonly remarks: unknown;
  readonly generation: number;
  readonly token_sealed: Uint8Array;
  readonly created_at: string;
  readonly updated_at: string;
}

export const USER_COLUMNS =
  "id name credential flow enabled limits remarks generation token_sealed created_at updated_at"
    .split(" ")
    .map((column) => `u.${column}`)
    .join(", ");

/** What `weir.put_user` takes. */
export function userJson(user: UserRecord, seal: TokenSeal): Readonly<Record<string, unknown>> {
  return {
    id: user.id,
    name: user.name,
    credential: user.credential,
    flow: user.flow,
    enabled: user.enabled,
    limits: limitsJson(user.limits, null),
    remarks: remarksJson(user.remarks),
    generation: user.trafficGeneration,
    token_hash: hashOfToken(user.token).toString("base64"),
    token_sealed: seal.seal(user.id, user.token).toString("base64"),
    created_at: user.createdAtMs,
    updated_at: user.updatedAtMs,
  };
}

/** Throws `FleetError` where the row is not what a weir has written. */
export function userOfRow(row: UserRow, seal: TokenSeal): UserRecord {
  const read = storedLimits.safeParse(row.limits);
  const remarks = storedRemarks.safeParse(row.remarks);
  const [createdAtMs, updatedAtMs] = [Number(row.created_at), Number(row.updated_at)];
  const isSound =
    read.success &&
    remarks.success &&
    row.name.trim() === row.name &&
    row.name !== "" &&
    row.credential !== "" &&
    Number.isSafeInteger(createdAtMs) &&
    Number.isSafeInteger(updatedAtMs) &&
    createdAtMs > 0 &&
    updatedAtMs >= createdAtMs;
  if (!isSound) throw new FleetError(`the row of user ${row.id} is not one that weir has written`);
  const { id, name, credential, flow, enabled, generation } = row;
  const token = seal.open(id, row.token_sealed);
  if (!isToken(token)) throw new FleetError(`the token of user ${id} is not one that weir has made`);
  return {
    id,
    name,
    credential,
    flow,
    enabled,
    trafficGeneration: generation,
    createdAtMs,
    updatedAtMs,
    token,
    limits: limitsOf(read.data).limits,
    remarks: remarksOf(remarks.data),
  };
}

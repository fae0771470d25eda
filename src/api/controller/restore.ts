/** A backup that takes the place of the state: looked at first, then laid beside it for a restart. */
import * as z from "zod";
import type { RestoreControl, RestoreView } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { texts } from "#api/answer-shapes.ts";
import { originOf } from "#api/audit-trail.ts";
import { route, type Call, type Route } from "#api/route.ts";
import { queryOf } from "#api/shapes.ts";
import { afterwards } from "./upkeep.ts";

/** Base64 of a passphrase, or of lines of age-keygen; headers of this program's are not logged. */
const KEY_HEADER = "weir-backup-key";
const MOST_KEY_CHARACTERS = 16_384;

const FILE = {
  rawBody: { type: "application/octet-stream" },
  maxBodyBytes: 64 * 1024 * 1024,
  tooLarge: "a backup of more than 64 MiB is restored by weir restore",
  faults: { 503: "Another backup is being read", 500: "It cannot be written; everything is as it was" },
} as const;

const counts = z.record(z.string(), z.int());
const viewAnswer = z.object({
  sum: z.string().describe("SHA-256 of the file, for putting it in force"),
  created_at: z.int().describe("Unix seconds"),
  version: z.string().describe("Of the weir that made it"),
  configuration: z.string().nullable().describe("Null: it has none, and the present one stays"),
  same_configuration: z.boolean(),
  other_sign_in: z.boolean().describe("The Controller will ask for another secret"),
  other_address: z.boolean().describe("The Controller will listen elsewhere"),
  stores: z.array(z.object({ role: z.string(), path: z.string(), counts })),
  listeners: z.array(z.object({ name: z.string(), type: z.string() })),
  users: z.int(),
  tokens: z.int(),
  choices: z.int().describe("Groups with a selection"),
  lost: z
    .object({ listeners: texts(), users: texts(), tokens: texts() })
    .describe("Names of what is there now and not in the backup"),
});

export function restoreRoutes(restore: RestoreControl): readonly Route[] {
  return [
    route({
      ...FILE,
      method: "POST",
      scope: "owner",
      path: "/api/svc/restore/check",
      onlyReads: true,
      summary: `What is in a backup, and what would be lost; its key comes in the header ${KEY_HEADER}, in base64`,
      answer: { status: 200, description: "It can be restored", schema: viewAnswer },
      handle: async (call) => viewJson(await restore.look(call.bytes, keyOf(call))),
    }),
    route({
      ...FILE,
      method: "POST",
      scope: "owner",
      path: "/api/svc/restore",
      summary: "Lay a backup beside the state, answer, then restart by it; what is there is kept aside",
      query: queryOf({
        sum: z.string().regex(/^[\da-f]{64}$/, "expected the SHA-256 that the check has said"),
      }),
      answer: {
        status: 200,
        description: "It is in force with the restart that follows",
        schema: z.object({ status: z.literal("restarting") }),
      },
      async handle(call) {
        const { bytes, query, caller, request, signal } = call;
        const restart = await restore.stage(bytes, keyOf(call), query.sum, {
          caller,
          from: originOf(request),
        });
        call.note({ action: "restore.ask", target: query.sum });
        afterwards(signal, restart);
        return { status: "restarting" };
      },
    }),
  ];
}

/** Throws `ApiError` 400. */
function keyOf({ request }: Pick<Call, "request">): string {
  const header = request.headers[KEY_HEADER];
  if (header === undefined || header === "") return "";
  const text = String(header);
  const bytes = Buffer.from(text, "base64");
  if (text.length > MOST_KEY_CHARACTERS || bytes.toString("base64") !== text)
    throw new ApiError(400, `the header ${KEY_HEADER} is to be base64 of at most 16384 characters`);
  return bytes.toString();
}

function viewJson(view: RestoreView): z.output<typeof viewAnswer> {
  return {
    sum: view.sum,
    created_at: Math.floor(view.createdAtMs / 1000),
    version: view.version,
    configuration: view.configuration,
    same_configuration: view.isSameConfiguration,
    other_sign_in: view.isOtherSignIn,
    other_address: view.isOtherAddress,
    stores: view.stores.map(({ role, path, counts: records }) => ({ role, path, counts: { ...records } })),
    listeners: view.listeners.map(({ name, type }) => ({ name, type })),
    users: view.users,
    tokens: view.tokens,
    choices: view.choices,
    lost: {
      listeners: [...view.lost.listeners],
      users: [...view.lost.users],
      tokens: [...view.lost.tokens],
    },
  };
}

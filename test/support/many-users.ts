/** A state of thousands of users, made as `weir users import` takes it. */
import { execFileSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));

export interface MadeUser {
  readonly id: string;
  readonly listener: string;
  readonly name: string;
  /** The UUID or the password. */
  readonly credential: string;
  readonly token: string;
}

/** Writes a state file with `count` enabled users for each listener, of these limits; its folder must exist. */
export function makeState(
  store: string,
  listeners: Readonly<Record<string, "vless" | "anytls" | "hysteria2" | "tuic">>,
  count: number,
  limits: { readonly upload_bps?: number; readonly download_bps?: number } = {},
): readonly MadeUser[] {
  const now = Date.now();
  const made: MadeUser[] = [];
  const document = { version: 1, generation: 0, listeners: {}, subscriptions: {} as Record<string, string> };
  for (const [listener, protocol] of Object.entries(listeners)) {
    const users = Array.from({ length: count }, (_, at) => {
      const password = randomBytes(16).toString("hex");
      const withUuid = { vless: randomUUID(), tuic: `${randomUUID()}:${password}` };
      const credential = protocol === "vless" || protocol === "tuic" ? withUuid[protocol] : password;
      const user = { id: randomUUID(), listener, name: `user ${at}`, credential, token: newToken() };
      made.push(user);
      document.subscriptions[user.id] = user.token;
      return { ...storedUser(user, protocol, now), ...limits };
    });
    const about = { id: randomUUID(), name: listener, protocol, revision: now, applied_revision: now };
    Object.assign(document.listeners, { [listener]: { ...about, users } });
  }
  const text = join(`${store}.json`);
  writeFileSync(text, JSON.stringify(document), { mode: 0o600 });
  execFileSync(WEIR, ["users", "import", text, store]);
  rmSync(text);
  return made;
}

const newToken = () => randomBytes(32).toString("base64url");

function storedUser({ id, listener, name, credential }: MadeUser, protocol: string, now: number) {
  return {
    id,
    inbound: listener,
    protocol,
    name,
    [protocol === "vless" ? "uuid" : "password"]: credential,
    enabled: true,
    upload_bytes: 0,
    download_bytes: 0,
    traffic_generation: 1,
    created_at: now,
    updated_at: now,
  };
}

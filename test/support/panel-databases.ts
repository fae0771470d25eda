/** Databases of panels by the schemas that their sources document, with the columns that matter. */
import { DatabaseSync } from "node:sqlite";

/** 3x-ui: internal/database/model/model.go and internal/xray/client_traffic.go there. */
const THREE_X_UI = `
CREATE TABLE inbounds (id integer PRIMARY KEY AUTOINCREMENT, user_id integer, up integer, down integer, total integer,
  remark text, enable numeric, expiry_time integer, traffic_reset text DEFAULT 'never', traffic_reset_day integer DEFAULT 1,
  listen text, port integer, protocol text, settings text, stream_settings text, tag text UNIQUE, sniffing text,
  node_id integer);
CREATE TABLE client_traffics (id integer PRIMARY KEY AUTOINCREMENT, inbound_id integer, enable numeric,
  email text UNIQUE, up integer, down integer, expiry_time integer, total integer, reset integer DEFAULT 0);
CREATE TABLE settings (id integer PRIMARY KEY AUTOINCREMENT, key text, value text);
`;

/** Marzban: app/db/models.py there. Enumerations are stored by their names. */
const MARZBAN = `
CREATE TABLE users (id INTEGER PRIMARY KEY, username VARCHAR(34) UNIQUE, status VARCHAR(8) NOT NULL,
  used_traffic BIGINT, data_limit BIGINT, data_limit_reset_strategy VARCHAR(8) NOT NULL DEFAULT 'no_reset',
  expire INTEGER, created_at DATETIME, sub_revoked_at DATETIME, on_hold_expire_duration BIGINT);
CREATE TABLE proxies (id INTEGER PRIMARY KEY, user_id INTEGER, type VARCHAR(11) NOT NULL, settings JSON NOT NULL);
CREATE TABLE inbounds (id INTEGER PRIMARY KEY, tag VARCHAR(256) UNIQUE NOT NULL);
CREATE TABLE jwt (id INTEGER PRIMARY KEY, secret_key VARCHAR(64) NOT NULL);
CREATE TABLE exclude_inbounds_association (proxy_id INTEGER, inbound_tag VARCHAR(256));
`;

export interface PanelInbound {
  readonly protocol: string;
  readonly port: number;
  readonly settings: object | string;
  readonly stream?: object;
  readonly row?: Readonly<Record<string, number | string>>;
}

export interface PanelTraffic {
  readonly email: string;
  readonly up: number;
  readonly down: number;
  readonly total?: number;
  readonly expiry?: number;
  readonly enable?: number;
}

export function writeThreeXUi(
  path: string,
  inbounds: readonly PanelInbound[],
  traffic: readonly PanelTraffic[] = [],
  template: string | null = '{"outbounds": [{"tag": "direct", "protocol": "freedom"}]}',
): void {
  using database = new DatabaseSync(path);
  database.exec(`${THREE_X_UI}BEGIN`);
  for (const { protocol, port, settings, stream = {}, row = {} } of inbounds) {
    const text = typeof settings === "string" ? settings : JSON.stringify(settings);
    const base = { enable: 1, up: 0, down: 0, total: 0, expiry_time: 0, listen: "127.0.0.1", sniffing: "{}" };
    const own = { protocol, port, settings: text, stream_settings: JSON.stringify(stream) };
    insert(database, "inbounds", { ...base, tag: `in-${port}-${protocol}`, ...own, ...row });
  }
  if (template !== null) insert(database, "settings", { key: "xrayTemplateConfig", value: template });
  for (const { email, up, down, total = 0, expiry = 0, enable = 1 } of traffic)
    insert(database, "client_traffics", {
      inbound_id: 1,
      email,
      up,
      down,
      total,
      expiry_time: expiry,
      enable,
    });
  database.exec("COMMIT");
}

export interface MarzbanUser {
  readonly username: string;
  readonly proxies: Readonly<Record<string, object>>;
  readonly excluded?: readonly string[];
  readonly row?: Readonly<Record<string, number | string>>;
}

/** What its subscriptions are signed with. */
export const MARZBAN_KEY = "0f".repeat(32);

export function writeMarzban(path: string, users: readonly MarzbanUser[]): void {
  using database = new DatabaseSync(path);
  database.exec(`${MARZBAN}BEGIN`);
  insert(database, "jwt", { secret_key: MARZBAN_KEY });
  for (const [at, { username, proxies, excluded = [], row = {} }] of users.entries()) {
    const base = { id: at + 1, username, status: "active", used_traffic: 0 };
    insert(database, "users", { ...base, created_at: "2025-01-09 10:00:00.000000", ...row });
    for (const [number, [type, settings]] of Object.entries(proxies).entries()) {
      const id = at * 10 + number + 1;
      insert(database, "proxies", { id, user_id: at + 1, type, settings: JSON.stringify(settings) });
      for (const tag of excluded)
        insert(database, "exclude_inbounds_association", { proxy_id: id, inbound_tag: tag });
    }
  }
  database.exec("COMMIT");
}

function insert(database: DatabaseSync, table: string, row: Readonly<Record<string, number | string>>): void {
  const columns = Object.keys(row);
  const marks = columns.map(() => "?").join(", ");
  database
    .prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`)
    .run(...Object.values(row));
}

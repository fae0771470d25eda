import { randomBytes, randomUUID } from "node:crypto";
import type { KeyKind } from "#core/control.ts";
import { realityKeys } from "#transport/reality/generate.ts";

const PASSWORD_BYTES = 16;
const SECRET_BYTES = 32;

const one = (value: string): Readonly<Record<string, string>> => ({ value });

const MAKERS: Readonly<Record<KeyKind, () => Readonly<Record<string, string>>>> = {
  uuid: () => one(randomUUID()),
  password: () => one(randomBytes(PASSWORD_BYTES).toString("base64url")),
  secret: () => one(randomBytes(SECRET_BYTES).toString("base64url")),
  "key-16": () => one(randomBytes(16).toString("base64")),
  "key-32": () => one(randomBytes(32).toString("base64")),
  reality: realityKeys,
};

export const makeKeys = (kind: KeyKind): Readonly<Record<string, string>> => MAKERS[kind]();

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import encodeQr from "qr";
import { ConfigError, messageOf } from "#core/errors.ts";
import { encodeBase32 } from "#lib/base32.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";

const FLAGS: FlagTable = {
  name: { kind: "text", value: "NAME", help: "what the app calls it (the name of this machine)" },
};

export const TOTP_USAGE = usageText(
  `usage: weir totp [flags] FILE   a new secret of one-time codes, into FILE, which must not be there

Prints it for an authenticator app: as a QR code, as an otpauth:// address and by itself. svc.totp-file names FILE.
`,
  FLAGS,
);

/** RFC 4226 §4, R6: 160 bits are recommended. */
const KEY_BYTES = 20;

/** `weir totp FILE`. */
export function totpCommand(args: readonly string[], env: NodeJS.ProcessEnv): number {
  const flags = parseFlags(args, FLAGS, env);
  const [file, ...more] = flags.rest;
  if (file === undefined || more.length > 0) throw new UsageError(TOTP_USAGE);
  const path = resolve(file);
  const secret = encodeBase32(randomBytes(KEY_BYTES));
  try {
    writeFileSync(path, `${secret}\n`, { mode: 0o600, flag: "wx", flush: true });
  } catch (error) {
    throw new ConfigError(`totp: nothing was written: ${messageOf(error)}`, { cause: error });
  }
  const uri = uriOf(secret, flags.text("name") ?? hostname());
  const { stdout } = process;
  stdout.write(`${encodeQr(uri, stdout.isTTY ? "term" : "ascii")}\n${uri}\nsecret: ${secret}\n`);
  stdout.write(
    `written to ${path}; with svc.totp-file: ${file} codes are asked for from the next reload on\n`,
  );
  return 0;
}

/** https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
function uriOf(secret: string, name: string): string {
  const query = `secret=${secret}&issuer=weir&algorithm=SHA1&digits=6&period=30`;
  return `otpauth://totp/weir:${encodeURIComponent(name)}?${query}`;
}

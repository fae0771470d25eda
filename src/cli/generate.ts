import { randomUUID } from "node:crypto";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { UsageError } from "./flags.ts";

/** What each kind prints; a word behind it may say more. */
const KINDS: Readonly<Record<string, (detail: string | undefined) => string>> = {
  uuid: () => `${randomUUID()}\n`,
  "vless-encryption": encryption,
};

/** `weir generate KIND`: fresh key material on standard output. */
export function generate(args: readonly string[]): number {
  const [kind = "", detail] = args;
  const make = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (make === undefined)
    throw new UsageError(`generate: expected ${Object.keys(KINDS).join(" or ")}, got ${kind || "nothing"}`);
  process.stdout.write(make(detail));
  return 0;
}

/** Both sides of one key, as lines of YAML; the listener's is a secret. */
function encryption(appearance = "native"): string {
  if (appearance !== "native" && appearance !== "xorpub" && appearance !== "random")
    throw new UsageError(`generate vless-encryption: expected native, xorpub or random, got ${appearance}`);
  const keys = (["x25519", "mlkem768"] as const).map((kind) => {
    const { client, server } = newEncryption(appearance, kind);
    return `# ${kind}${kind === "mlkem768" ? ", against quantum computers from the first message on" : ""}\ndecryption: ${server}\nencryption: ${client}\n`;
  });
  return keys.join("\n");
}

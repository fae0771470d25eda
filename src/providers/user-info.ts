import type { SubscriptionInfo } from "#core/control.ts";

/** `upload=1; download=2; total=3; expire=4`, bytes and Unix seconds; null where it says nothing. */
export function readUserInfo(text: string): SubscriptionInfo | null {
  const values = new Map<string, number>();
  for (const part of text.slice(0, 1024).split(/[;,]/)) {
    const [, key, digits] = /^\s*([a-z]+)\s*=\s*(\d{1,16})(?:\.\d*)?\s*$/i.exec(part) ?? [];
    if (key !== undefined) values.set(key.toLowerCase(), Number(digits));
  }
  if (values.size === 0) return null;
  const of = (key: string) => values.get(key) ?? 0;
  return {
    uploadBytes: of("upload"),
    downloadBytes: of("download"),
    totalBytes: of("total"),
    expiresAtUnixSeconds: of("expire"),
  };
}

/** A text that stands in the configuration, as a data URL (RFC 2397): `data:TYPE[;base64],TEXT`. */
import { Unsupported } from "#core/fields.ts";

const SCHEME = "data:";
const BASE64 = /;\s*base64$/i;
/** Of RFC 2397. */
const DEFAULT_TYPE = "text/plain;charset=US-ASCII";

export interface FixedText {
  readonly type: string;
  readonly body: Buffer;
}

export function parseDataUrl(source: string): FixedText | Unsupported {
  const comma = source.indexOf(",");
  if (comma < 0) return new Unsupported("expected data:TYPE,TEXT");
  const head = source.slice(SCHEME.length, comma);
  const text = source.slice(comma + 1);
  const type = head.replace(BASE64, "") || DEFAULT_TYPE;
  if (BASE64.test(head)) return { type, body: Buffer.from(text, "base64") };
  try {
    return { type, body: Buffer.from(decodeURIComponent(text)) };
  } catch {
    return new Unsupported(
      "expected data:TYPE,TEXT with % only in front of two hex digits (%25 is a % itself)",
    );
  }
}

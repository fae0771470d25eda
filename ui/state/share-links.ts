import type { UserDetail } from "#ui/api/admin-types.ts";
import type { Link } from "#ui/api/link.ts";

/** What a client would read from the user's subscription, from this Controller; empty where there is none. */
export async function shareLinksOf(
  link: Link,
  { subscription_url: url }: UserDetail,
): Promise<readonly string[]> {
  const token = url?.split("/").at(-1) ?? "";
  if (token === "") return [];
  const body = (await link.text(`sub/svc/${token}`)).trim();
  const bytes = Uint8Array.from(atob(body), (sign) => sign.charCodeAt(0));
  return new TextDecoder()
    .decode(bytes)
    .split("\n")
    .filter((line) => line.includes("://"));
}

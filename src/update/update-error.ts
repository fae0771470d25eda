/** An update is refused or has failed: what, where, what would be right. Nothing has changed, unless the text says so. */
export class UpdateError extends Error {
  override readonly name = "UpdateError";
}

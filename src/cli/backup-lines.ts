import type { BackupContents } from "#backup/contents.ts";

/** What a backup holds, for people. */
export function contentLines(contents: BackupContents): readonly string[] {
  const { createdAtMs, version, configuration, stores, choices } = contents;
  const text = configuration === null ? "none" : `${Buffer.byteLength(configuration)} bytes`;
  return [
    `backup of ${new Date(createdAtMs).toISOString()} by weir ${version}`,
    `configuration: ${text}`,
    ...stores.map(({ role, path, parts }) => {
      const counts = parts.map(({ name, records }) => `${records.length} ${name}`);
      return `${role}: ${path} (${counts.join(", ")})`;
    }),
    `choices: ${Object.keys(choices.selected).length} groups, ${Object.keys(choices.storage).length} of dashboards`,
  ];
}

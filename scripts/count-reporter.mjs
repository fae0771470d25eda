// A reporter that says nothing until the end: what was skipped and why, and the counts, as JSON.
export default async function* countReporter(source) {
  const counts = { passed: 0, failed: 0, skipped: [] };
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite") continue;
    if (data.skip !== undefined) counts.skipped.push({ file: data.file, name: data.name, reason: data.skip });
    else if (type === "test:pass") counts.passed++;
    else counts.failed++;
  }
  yield JSON.stringify(counts);
}

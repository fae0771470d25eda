// A reporter that says nothing until the end: the counts, which files failed, what was skipped and why, as JSON.
export default async function* countReporter(source) {
  const counts = { passed: 0, failed: 0, failedFiles: [], skipped: [] };
  const failed = new Set();
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (type === "test:fail" && data.file !== undefined) failed.add(data.file);
    if (data.details?.type === "suite") continue;
    if (data.skip !== undefined) counts.skipped.push({ file: data.file, name: data.name, reason: data.skip });
    else if (type === "test:pass") counts.passed++;
    else counts.failed++;
  }
  counts.failedFiles = [...failed];
  yield JSON.stringify(counts);
}

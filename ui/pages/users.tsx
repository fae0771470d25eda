import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { useWords } from "#ui/state/context.ts";
import { UserTable } from "./user-table.tsx";

export function UsersPage() {
  const { t } = useWords();
  return (
    <AdminGate title={t("page.users")} subject={t("users.subject")} absent={t("users.absent")}>
      <UserTable />
    </AdminGate>
  );
}

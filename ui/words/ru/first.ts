import type { SameKeys } from "#lib/words.ts";
import type { first as english } from "../en/first.ts";

export const first: SameKeys<typeof english> = {
  "use.title": "Как подключиться",
  "use.none": "Порт для HTTP или SOCKS не открыт: задайте mixed-port в конфигурации.",
  "use.for": "Для",
  "use.address": "Адрес",
  "use.shell": "Shell",
  "use.powershell": "PowerShell",
  "use.git": "Git",
  "use.copy": "Копировать",
  "use.copied": "Скопировано",
  "use.shared": "Другие устройства могут использовать его по этому адресу.",
  "use.thisMachine":
    "Использовать его может только машина, на которой работает weir; «allow-lan» в настройках открывает его для других.",
  "use.qrLabel": "QR-код адреса прокси",
  "trouble.title": "Что не в порядке",
  "trouble.none": "Всё в порядке: узлы, правила, списки и журнал без замечаний.",
  "trouble.show": "Показать",
  "trouble.showOne": "Показать: {what}",
  "trouble.unusable": {
    one: "{count} узел нельзя использовать",
    few: "{count} узла нельзя использовать",
    many: "{count} узлов нельзя использовать",
    other: "{count} узла нельзя использовать",
  },
  "trouble.silent": {
    one: "{count} узел не ответил на последнюю проверку",
    few: "{count} узла не ответили на последнюю проверку",
    many: "{count} узлов не ответили на последнюю проверку",
    other: "{count} узла не ответили на последнюю проверку",
  },
  "trouble.deadRules": {
    one: "{count} правило ничему не соответствует",
    few: "{count} правила ничему не соответствуют",
    many: "{count} правил ничему не соответствуют",
    other: "{count} правила ничему не соответствуют",
  },
  "trouble.emptyProviders": {
    one: "{count} список ни разу не получен",
    few: "{count} списка ни разу не получены",
    many: "{count} списков ни разу не получены",
    other: "{count} списка ни разу не получены",
  },
  "trouble.warnings": {
    one: "{count} последнее предупреждение в журнале",
    few: "{count} последних предупреждения в журнале",
    many: "{count} последних предупреждений в журнале",
    other: "{count} последних предупреждения в журнале",
  },
};

# bash completion of ringhold: asks the program itself for its commands and flags.
# SPDX-License-Identifier: Apache-2.0

_ringhold()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]}
    local command=() word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == -* ]] && break
        command+=("$word")
    done
    case $prev in
    --config|--data|--actor|--lua|--lua-check|--auth-keys|--admin-token|--script|--keys|--tls-cert|--tls-key|--link-ca|--link-certificate|--link-key|--out)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return ;;
    -o|--output)
        mapfile -t COMPREPLY < <(compgen -W "table json" -- "$cur")
        return ;;
    --diff)
        mapfile -t COMPREPLY < <(compgen -W "add drain remove weight" -- "$cur")
        return ;;
    --log-level)
        mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$cur")
        return ;;
    esac
    if ((${#command[@]} == 0)); then
        word=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$word --help --version" -- "$cur")
        return
    fi
    if [[ $cur == -* ]]; then
        word=$("$program" "${command[@]:0:2}" --help 2>/dev/null || "$program" "${command[0]}" --help 2>/dev/null)
        word=$(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' <<<"$word")
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
        return
    fi
    case ${command[*]} in
    node) word="list wait add drain remove replace weight" ;;
    txn) word="list show resolve" ;;
    quarantine) word="list clear add" ;;
    coordinators) word="list set add replace remove" ;;
    recover) word="inspect verify backup restore new-cluster undo" ;;
    config) word="check print" ;;
    token) word="make check" ;;
    tls) word="init coordinator node gateway operator check" ;;
    rolling-restart|"node wait"|"node drain"|"node remove"|"node replace"|"node weight")
        word=$("$program" node list -o json --timeout-ms 500 2>/dev/null | tr '{' '\n' | sed -n 's/^"node":"\([^"]*\)".*/\1/p') ;;
    "txn show"|"txn resolve")
        word=$("$program" txn list -o json --timeout-ms 500 2>/dev/null | tr '{' '\n' | sed -n 's/^"txn":\([0-9]*\).*/\1/p') ;;
    *)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
}
complete -F _ringhold ringhold

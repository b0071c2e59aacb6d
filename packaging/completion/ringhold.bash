# bash completion of ringhold: asks the program itself, by --help, for its commands, flags and their values.
# SPDX-License-Identifier: Apache-2.0

_ringhold()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]}
    local command=() word help i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == -* ]] && break
        command+=("$word")
    done
    if ((${#command[@]} == 0)); then
        word=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$word --help --version" -- "$cur")
        return
    fi
    if [[ $cur == -* || $prev == -* ]]; then
        help=$("$program" "${command[@]:0:2}" --help 2>/dev/null || "$program" "${command[0]}" --help 2>/dev/null)
        [[ $prev == -o ]] && prev=--output
        # The word for a flag's value stands one blank behind it; a switch has more blanks there.
        word=$(sed -n "s/^  $prev \([^ ][^ ]*\) .*/\1/p" <<<"$help")
        case $word in
        *FILE*|*DIR*)
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return ;;
        LEVEL)
            mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$cur")
            return ;;
        [[:lower:]]*\|[[:lower:]]*)
            mapfile -t COMPREPLY < <(compgen -W "${word//|/ }" -- "$cur")
            return ;;
        ?*) return ;;
        esac
        word=$(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' <<<"$help")
        [[ $cur == -* ]] && mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur") && return
    fi
    case ${command[*]} in
    rolling-restart|"node wait"|"node drain"|"node remove"|"node replace"|"node weight")
        word=$("$program" node list -o json --timeout-ms 500 2>/dev/null | tr '{' '\n' | sed -n 's/^"node":"\([^"]*\)".*/\1/p') ;;
    "txn show"|"txn resolve")
        word=$("$program" txn list -o json --timeout-ms 500 2>/dev/null | tr '{' '\n' | sed -n 's/^"txn":\([0-9]*\).*/\1/p') ;;
    *)
        # "txn list | show N | resolve N: changes of the ring"
        word=$("$program" --help 2>/dev/null |
            sed -nE "s/^  ${command[*]} .*\b${command[*]} (([a-z-]+( [A-Z]+)? \| )+[a-z-]+).*/\1/p" | sed 's/ [A-Z]*//g; s/|/ /g')
        if [[ -z $word ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
}
complete -F _ringhold ringhold

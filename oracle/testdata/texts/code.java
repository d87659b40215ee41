package com.example.library.lending;

import java.time.Clock;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * Keeps track of who has borrowed which book, and until when.
 */
public final class LendingDesk {

    private static final int MAX_LOANS_PER_READER = 5;
    private static final int LOAN_DAYS = 28;

    private final Clock clock;
    private final Map<String, List<Loan>> loansByReader = new ConcurrentHashMap<>();

    public LendingDesk(Clock clock) {
        this.clock = clock;
    }

    public Loan lend(String readerId, String isbn) throws TooManyLoansException {
        List<Loan> loans = loansByReader.computeIfAbsent(readerId, id -> Collections.synchronizedList(new ArrayList<>()));
        synchronized (loans) {
            if (loans.size() >= MAX_LOANS_PER_READER) {
                throw new TooManyLoansException(readerId, loans.size());
            }
            Loan loan = new Loan(isbn, LocalDate.now(clock).plusDays(LOAN_DAYS));
            loans.add(loan);
            return loan;
        }
    }

    public Optional<Loan> giveBack(String readerId, String isbn) {
        List<Loan> loans = loansByReader.getOrDefault(readerId, Collections.emptyList());
        synchronized (loans) {
            Optional<Loan> found = loans.stream().filter(loan -> loan.isbn().equals(isbn)).findFirst();
            found.ifPresent(loans::remove);
            return found;
        }
    }

    public List<String> overdueReaders() {
        LocalDate today = LocalDate.now(clock);
        return loansByReader.entrySet().stream()
                .filter(entry -> entry.getValue().stream().anyMatch(loan -> loan.dueDate().isBefore(today)))
                .map(Map.Entry::getKey)
                .sorted()
                .collect(Collectors.toUnmodifiableList());
    }

    public record Loan(String isbn, LocalDate dueDate) {
        public Loan {
            if (isbn == null || isbn.isBlank()) {
                throw new IllegalArgumentException("isbn must not be blank");
            }
        }
    }

    public static final class TooManyLoansException extends Exception {
        private static final long serialVersionUID = 1L;

        TooManyLoansException(String readerId, int loans) {
            super(String.format("Reader %s already has %d loans", readerId, loans));
        }
    }
}
